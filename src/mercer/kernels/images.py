"""OnImages: what a kernel on changed points, k(g(x), g(z)), leaves to the kernel inside."""

from .base import ALL, Kernel
from .composite import Unary
from .printing import printed
from .types import Array, Tile


class OnImages(Unary):
    """k(g(x), g(z)): a subclass gives g as `image`."""

    def image(self, X: Array) -> Array:
        """The points that the kernel sees, one for each point."""
        raise NotImplementedError(f"{type(self).__name__} must define image(X).")

    def __repr__(self) -> str:
        others = [v for name, v in self.get_params(deep=False).items() if name != "kernel"]
        return f"{type(self).__name__}({', '.join(map(printed, [self.kernel, *others]))})"

    @property
    def is_psd(self) -> bool | None:
        return self.kernel.is_psd

    landmarks = Kernel.landmarks

    def against(self, S: Array) -> Tile:
        inner = self.kernel.against(self.kernel.landmarks(self.image(S)))
        return lambda rows, columns=ALL: inner(self.image(rows), columns)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.image(X))

    def magnitude(self, X: Array) -> Array:
        return self.kernel.magnitude(self.image(X))

    def features(self, X: Array) -> Array:
        return self.kernel.features(self.image(X))

    def rounding(self, S: Array) -> float:
        return self.kernel.rounding(self.image(S))
