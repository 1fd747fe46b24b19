from hypothesis import settings

# The first run of a program compiles it: no deadline per example. All else as Hypothesis has it (on CI: the same examples every time).
settings.register_profile("compiled", parent=settings(), deadline=None)
settings.load_profile("compiled")
