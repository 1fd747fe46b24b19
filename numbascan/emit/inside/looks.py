"""Long loops poll Python now and then (a look): for signals such as Ctrl-C, and to report their progress.

Python notes a signal at once, and calls its handler when the main thread is back in Python. So a loop goes there itself, every 0.4
seconds: it takes Python's lock, has the handlers called, and goes on unless one of them raises. That error is kept for the loop's caller.

Code that is compiled once in a process (`_TEXT`) does this for all kernels. It counts steps, and reads the clock about every 50 µs: the
number of steps between two readings is corrected at each. A reading takes 25 to 70 ns.

    watch of a call:  stopped, time of its next look in Python        site of a loop:  steps between two readings, time of the last one

Threads that Python does not know (those of lanes, or of Numba) never wait for its lock: they only see that their call was stopped.
Python's other threads look once, and again only if they show progress or ask whether to go on: no handler is ever called in them.
Not handled: Windows, where a loop ends first.
"""

from __future__ import annotations

import sys
import threading
import time
from functools import cache

from ...progress import BETWEEN_LOOKS, who_is_asked, who_is_told
from . import process_code

VISIT, JOIN = "numbascan_visit", "numbascan_join"
PERIOD = 50_000  # ns between two readings of the clock
BETWEEN = round(1e9 * BETWEEN_LOOKS)  # ns; another thread that computes in Python may keep its lock for 5 ms each time
NEVER = 2**62
LOOKS_EXIST = sys.platform != "win32"

_causes: dict[int, BaseException] = {}  # by thread: what has stopped its loop


def is_stopped() -> bool:
    """True if a loop of this thread was stopped, and its `cause` was not asked for yet."""
    return threading.get_ident() in _causes


def cause() -> BaseException:
    """The error that stopped a loop of this thread: of a signal handler, or of a callback that shows progress or is asked to go on."""
    return _causes.pop(threading.get_ident(), None) or KeyboardInterrupt()


def _look(done: int, passes: int) -> int:
    """Shows the progress of a loop and asks whether to go on, if somebody wants that; the ns until the next look.

    passes: 0 in loops inside others, which show nothing.
    """
    show, ask = who_is_told(), who_is_asked()
    if ask is not None:
        ask()
    if show is not None and passes:
        show(done, passes)
    return BETWEEN if show is not None or ask is not None or threading.get_ident() == threading.main_thread().ident else NEVER


def _note(error: BaseException) -> None:
    _causes[threading.get_ident()] = error


@cache
def addresses() -> dict[str, int]:
    """The addresses of the functions that kernels call, by name; LLVM knows them from now on."""
    if not LOOKS_EXIST:
        return {}
    return process_code.addresses(_TEXT, [name for name in (VISIT, JOIN) if name in _TEXT])


_TEXT = f"""
declare i32 @clock_gettime(i32, ptr)
declare ptr @PyGILState_GetThisThreadState()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare i32 @PyException_SetTraceback(ptr, ptr)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_DecRef(ptr)

@two_numbers = private constant [3 x i8] c"LL\\00"
@one_object = private constant [2 x i8] c"O\\00"

define private i64 @now() {{
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 {getattr(time, "CLOCK_MONOTONIC", 0)}, ptr %time)
  %place = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}

; Reads the clock, corrects the number of steps until the next reading, and looks. True: the loop is to end.
define i1 @{VISIT}(ptr %watch, ptr %site, i64 %done, i64 %passes) {{
  %now = call i64 @now()
  %place = getelementptr i64, ptr %site, i64 1
  %last = load i64, ptr %place
  store i64 %now, ptr %place
  %is_first = icmp eq i64 %last, 0
  br i1 %is_first, label %look, label %correct
correct:
  %steps = load i64, ptr %site
  %gone = sub i64 %now, %last
  %passed = or i64 %gone, 1
  %product = mul i64 %steps, {PERIOD}
  %fitting = udiv i64 %product, %passed
  %longest = mul i64 %steps, 64
  %grown = call i64 @llvm.umin.i64(i64 %fitting, i64 %longest)
  %most = call i64 @llvm.umin.i64(i64 %grown, i64 16777216)
  %next = call i64 @llvm.umax.i64(i64 %most, i64 1)
  store i64 %next, ptr %site
  br label %look
look:
  %is_stopped = call i1 @look(ptr %watch, i64 %now, i64 %done, i64 %passes)
  ret i1 %is_stopped
}}
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

; Calls Python when that is due, in a thread that Python knows. True: the loop is to end.
define private i1 @look(ptr %watch, i64 %now, i64 %done, i64 %passes) {{
  %place = getelementptr i64, ptr %watch, i64 1
  %due = load atomic i64, ptr %place monotonic, align 8
  %is_first = icmp eq i64 %due, 0
  br i1 %is_first, label %begin, label %compare
begin:
  %later = add i64 %now, {BETWEEN}
  store atomic i64 %later, ptr %place monotonic, align 8
  br label %end
compare:
  %is_early = icmp slt i64 %now, %due
  br i1 %is_early, label %end, label %ask
ask:
  %thread = call ptr @PyGILState_GetThisThreadState()
  %is_strange = icmp eq ptr %thread, null
  br i1 %is_strange, label %end, label %python
python:
  store atomic i64 {NEVER}, ptr %place monotonic, align 8
  %lock = call i32 @PyGILState_Ensure()
  %signals = call i32 @PyErr_CheckSignals()
  %is_raised = icmp ne i32 %signals, 0
  br i1 %is_raised, label %raised, label %tell
tell:
  %wait = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr inttoptr (i64 {id(_look)} to ptr), ptr @two_numbers, i64 %done, i64 %passes)
  %has_raised = icmp eq ptr %wait, null
  br i1 %has_raised, label %raised, label %go_on
go_on:
  %more = call i64 @PyLong_AsLongLong(ptr %wait)
  call void @Py_DecRef(ptr %wait)
  %then = add i64 %now, %more
  store atomic i64 %then, ptr %place monotonic, align 8
  br label %release
raised:
  %type = alloca ptr
  %error = alloca ptr
  %traceback = alloca ptr
  call void @PyErr_Fetch(ptr %type, ptr %error, ptr %traceback)
  call void @PyErr_NormalizeException(ptr %type, ptr %error, ptr %traceback)
  %t = load ptr, ptr %type
  %e = load ptr, ptr %error
  %b = load ptr, ptr %traceback
  %has_no_traceback = icmp eq ptr %b, null
  br i1 %has_no_traceback, label %note, label %with_traceback
with_traceback:
  call i32 @PyException_SetTraceback(ptr %e, ptr %b)
  br label %note
note:
  %nothing = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr inttoptr (i64 {id(_note)} to ptr), ptr @one_object, ptr %e)
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr %nothing)
  call void @Py_DecRef(ptr %t)
  call void @Py_DecRef(ptr %e)
  call void @Py_DecRef(ptr %b)
  store atomic i64 1, ptr %watch monotonic, align 8
  br label %release
release:
  call void @PyGILState_Release(i32 %lock)
  br label %end
end:
  %stopped = load atomic i64, ptr %watch monotonic, align 8
  %is_stopped = icmp ne i64 %stopped, 0
  ret i1 %is_stopped
}}
"""

if sys.platform == "linux":
    _TEXT += f"""
declare i32 @pthread_timedjoin_np(i64, ptr, ptr)

; Waits for a thread, and looks every tenth of a second.
define void @{JOIN}(ptr %watch, i64 %thread) {{
  %time = alloca [2 x i64]
  br label %wait
wait:
  call i32 @clock_gettime(i32 0, ptr %time)
  %place = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %place
  %later = add i64 %rest, 100000000
  %is_next = icmp sge i64 %later, 1000000000
  %carry = zext i1 %is_next to i64
  %whole = mul i64 %carry, 1000000000
  %left = sub i64 %later, %whole
  %second = add i64 %seconds, %carry
  store i64 %second, ptr %time
  store i64 %left, ptr %place
  %result = call i32 @pthread_timedjoin_np(i64 %thread, ptr null, ptr %time)
  %is_running = icmp eq i32 %result, 110
  br i1 %is_running, label %look, label %end
look:
  %now = call i64 @now()
  %is_stopped = call i1 @look(ptr %watch, i64 %now, i64 0, i64 0)
  br label %wait
end:
  ret void
}}
"""
