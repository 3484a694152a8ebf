"""The names of Dask that are private there. No other file reads a private name of Dask."""

from typing import Any


def graph_nodes() -> tuple[Any, Any, Any] | None:
    """(GraphNode, Task, Alias), or None for a Dask whose graphs have other nodes."""
    try:
        from dask._task_spec import Alias, GraphNode, Task
    except ImportError:
        return None
    return (GraphNode, Task, Alias) if hasattr(Task, "fuse") else None


def empty_frame(X: Any) -> Any:
    """A frame without rows, with the columns and types of a Dask DataFrame."""
    return X._meta


def made_up_frame(X: Any) -> Any:
    """A few made-up rows, with the columns and types of a Dask DataFrame."""
    return X._meta_nonempty
