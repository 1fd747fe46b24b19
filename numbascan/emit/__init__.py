"""Text: plans as Python modules, on disk and in memory."""
