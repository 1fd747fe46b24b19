"""Iterators, and what makes its elements on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ..tree import OpenList
from ..variable import CAPTURE, Variable, at_line

Make = Callable[[Iterable[Any], Any], Any]  # (items, each): makes elements of the items, and calls `each` on every one


class RunsOut:
    """An iterator whose position is known everywhere in the code. `what` is its name in messages."""

    what = "an iterator (of zip, enumerate or reversed)"

    def __init__(self) -> None:
        self._born, self._at, self._why = CAPTURE.frame, 0, ""

    def __iter__(self) -> Any:
        return self

    def check(self) -> None:
        """TypeError where it was run over before."""
        if self._why:
            raise TypeError(f"{self.what} {self._why}, and is read again{at_line()}; under Python it runs out: make one for each loop")

    def finish(self) -> None:
        """Nobody may read it from now on."""
        self.move(self._at, f"was run over before{at_line()}")

    def move(self, at: int, why: str, is_stuck: bool = False) -> None:
        """Moves it to a position. TypeError in a branch or a pass that only the run decides, and that began when the iterator existed.

        is_stuck: the move cannot be taken back.
        """
        frame, before = CAPTURE.frame, (self._at, self._why)
        if frame is not None:
            frame.undone.append((None, lambda: self._set(*before)))
        while frame is not None and not frame.made(self._born):
            if not frame.is_trial:
                raise TypeError(f"{self.what} that was made before is advanced in {frame.place}; make it there")
            frame.is_stuck = frame.is_stuck or is_stuck
            frame = frame.outer
        self._set(at, why)

    def _set(self, at: int, why: str) -> None:
        self._at, self._why = at, why


class Made:
    """What makes elements of items: a generator expression, `map`, `filter`, or a list of a length that only the run knows."""

    def taken(self) -> tuple[Any, Make]:
        """What it runs over, and what makes its elements of that."""
        raise NotImplementedError

    def is_open(self) -> bool:
        """Whether only the run knows how many items it runs over."""
        raise NotImplementedError

    def rows(self) -> Any:
        """Its elements as `Rows`, where they are there already; else None."""
        return None

    def array(self) -> Variable:
        """np.array of it. TypeError where that is no array."""
        raise TypeError(f"an array is made of an iterator{at_line()}; write np.array of a list, [… for …] or list(…)")

    def holds(self, value: Any) -> Any:
        """`value in x`."""
        raise TypeError(f"`in` asks an iterator{at_line()}; make a list of it")

    def set(self, index: Any, value: Any) -> None:
        """`x[index] = value`. TypeError where that cannot be."""
        raise TypeError(f"an iterator is written{at_line()}; make a list of it")


class InPlaceOfAList:
    """Base of what stands for a list or tuple (`kind`): what it does not do in its place is refused."""

    kind: type = list
    born: Any = None  # the branch or pass in which it was made

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"{what}{at_line()}, and how many elements it has only the run knows; write an array (np.array of it, or np.zeros)")

    def __array__(self, *_: Any, **__: Any) -> Any:
        self._refuse("a list is returned, or computed with")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse(f"{self.kind.__name__}.{name} is called")

    def __bool__(self) -> bool:
        return self._refuse("a list is asked whether it is empty")

    def __eq__(self, other: object) -> bool:
        return self._refuse("a list is compared")

    __hash__ = None  # type: ignore[assignment]

    def _operator(self, *_: Any) -> Any:
        return self._refuse("an operator is applied to a list")

    __mul__ = __rmul__ = __lt__ = __gt__ = __le__ = __ge__ = __iadd__ = __imul__ = __add__ = __radd__ = _operator

    def __repr__(self) -> str:
        return f"a {self.kind.__name__} of as many elements as only the run knows"


class Gone(InPlaceOfAList, Made, OpenList):
    """What a name has behind a loop whose passes give it a list of our own: the list of the last pass, whose values nobody kept."""

    def taken(self, *_: Any) -> Any:
        """Refused, as all else."""
        raise TypeError(
            f"a list that a pass of a loop makes is read behind the loop{at_line()}, where its elements are not known; write an array "
            "(np.array of it) in the pass, and read that"
        )

    is_open = rows = array = parts = holds = set = has_elements = __iter__ = __len__ = __getitem__ = _refuse = taken  # type: ignore[assignment]
    length = property(taken)


class OtherDtype(TypeError):
    """A list gets a number that its dtype does not hold, in a branch or a pass.

    promote: gives the list a dtype that holds it; called before the branch or the pass is traced again.
    """

    def __init__(self, promote: Callable[[], None], dtype: str, before: str) -> None:
        super().__init__(
            f"a list of {before} gets an element of {dtype}{at_line()}, and how many elements it has only the run knows; give all elements "
            "one dtype from the start (0.0 for 0)"
        )
        self.promote = promote
