"""Ways to cut and write the fused update of a hidden layer on a GPU (``maxmean.deep.core.fused``).

    python benchmarks/fused_update.py [ROWS:COLUMNS:WARPS[:turned] ...] [--runs N ...]

An update reads a layer's weights twice and its two moments once, and writes all three: seven transfers, of which the first is a
product that is the same in every line. A line has the height and width of a tile, the warps that share it, how its gradient is
written, microseconds an update of all runs, and bytes a second. With few runs the second reading may come from a cache.

The gradient comes out of the matrix units spread over the threads in another way than the weights come from memory, and how it is
written decides how often the compiler moves numbers from one way to the other: "turned" takes it as the transpose of a transposed
product. The last column says whether the results are those of the tiles that the package has, bit for bit. The package's own come
first and last: by so much the machine itself changes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple
from unittest import mock

ROWS, COLUMNS, WARPS = (16, 32, 64), (32, 64, 128), (1, 2, 4, 8)
"""Of tiles, in all combinations that give a thread some numbers and not too many for its registers."""
A_THREAD = (4, 32)
LAYER, BATCH = (1280, 1024), 32
"""Ten heads with 128 units each behind MinAtar's convolution."""
UPDATES, TURNS = 50, 6
TRANSFERS = 7


def turned(outer: Any, inputs: Any) -> Any:
    return (inputs.T @ outer.T).T


class Way(NamedTuple):
    """A way to cut and write the update."""

    rows: int
    columns: int
    warps: int
    turned: bool

    @classmethod
    def parse(cls, text: str) -> Way:
        """A way from its text.

        >>> str(Way.parse("32:64:4")), str(Way.parse("16:32:2:turned"))
        ('32 | 64 | 4 | plain', '16 | 32 | 2 | turned')
        """
        tile, written = text.split(":")[:3], text.split(":")[3:]
        if len(tile) < 3 or not all(number.isdecimal() for number in tile) or written not in ([], ["turned"]):
            raise argparse.ArgumentTypeError(f"a way is written as 32:64:4 or 32:64:4:turned, not {text!r}")
        rows, columns, warps = map(int, tile)
        return cls(rows, columns, warps, turned=bool(written))

    def __str__(self) -> str:
        return f"{self.rows} | {self.columns} | {self.warps} | {'turned' if self.turned else 'plain'}"

    def updates(self, arguments: tuple[Any, ...]) -> Any:
        """So many updates, one after the other, compiled."""
        import jax

        from maxmean.deep.core import fused
        from maxmean.deep.core.optimizers import Corrections

        def update(matrix: Any, outer: Any, inputs: Any) -> Any:
            one = jax.numpy.float32(1.0)
            return fused.adam_step(matrix, outer, inputs, one / 1000, Corrections(one, one))

        def several(matrix: Any, outer: Any, inputs: Any) -> Any:
            def one(_: Any, carried: Any) -> Any:
                # What goes back is kept in the loop, or else it would not be computed.
                return jax.vmap(update)(carried[0], outer, inputs)

            return jax.lax.fori_loop(0, UPDATES, one, (matrix, jax.numpy.zeros_like(inputs)))

        written = turned if self.turned else fused._product
        changes: dict[str, Any] = {"ROWS": self.rows, "COLUMNS": self.columns, "WARPS": self.warps, "_product": written}
        with mock.patch.multiple(fused, **changes):
            return jax.jit(several, donate_argnums=0).lower(*arguments).compile()


def ways() -> list[Way]:
    """All of them."""
    found = []
    for rows, columns, warps, written in product(ROWS, COLUMNS, WARPS, (False, True)):
        each = rows * columns / (32 * warps)
        if A_THREAD[0] <= each <= A_THREAD[1]:
            found.append(Way(rows, columns, warps, written))
    return found


def arguments_of(runs: int) -> tuple[Any, ...]:
    """The matrices of so many runs with their moments, and what their gradients are made of: the same each time."""
    import jax

    from maxmean.deep.core.fused import Matrix

    keys = jax.random.split(jax.random.key(0), 5)
    weights, mean, square = (jax.random.normal(key, (runs, *LAYER)) for key in keys[:3])
    outer = jax.random.normal(keys[3], (runs, LAYER[0], BATCH))
    inputs = jax.random.normal(keys[4], (runs, BATCH, LAYER[1]))
    return Matrix(weights, mean, square**2), outer, inputs


def measure(way: Way, runs: int, expected: Any) -> tuple[str, Any]:
    """A line of the table, and what came out."""
    import jax

    if LAYER[0] % way.rows or LAYER[1] % way.columns:
        raise ValueError(f"{LAYER[0]} x {LAYER[1]} cannot be cut into such tiles")
    arguments = arguments_of(runs)
    updates = way.updates(arguments)
    (matrix, back), (_, *others) = updates(*arguments), arguments
    came_out = jax.tree.map(jax.numpy.copy, (*matrix, back))
    best = float("inf")
    for _ in range(TURNS):
        matrix.weights.block_until_ready()
        begin = time.perf_counter()
        matrix, back = updates(matrix, *others)
        back.block_until_ready(), matrix.weights.block_until_ready()
        best = min(best, (time.perf_counter() - begin) / UPDATES)
    moved = TRANSFERS * runs * LAYER[0] * LAYER[1] * 4
    told = ""
    if expected is not None:
        same = all(bool((one == other).all()) for one, other in zip(came_out, expected, strict=True))
        told = "yes" if same else "no"
    return f"| {runs} | {way} | {best * 1e6:.1f} | {moved / best / 1e12:.2f} | {told} |", came_out


def table(runs: int, compared: list[Way]) -> Iterator[str]:
    """The lines for so many runs."""
    from maxmean.deep.core import fused

    own = Way(fused.ROWS, fused.COLUMNS, fused.WARPS, turned=False)
    line, expected = measure(own, runs, None)
    yield line
    for way in [*compared, own]:
        try:
            yield measure(way, runs, expected)[0]
        except Exception as error:  # of many kinds: this GPU, or this JAX, does not take such tiles
            said = (str(error) or type(error).__name__).splitlines()[0].replace("|", "/")
            yield f"| {runs} | {way} | {said[:60]} | | |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "ways", nargs="*", type=Way.parse, metavar="ROWS:COLUMNS:WARPS[:turned]", help="all, by default"
    )
    parser.add_argument("--runs", type=int, nargs="*", default=[5, 40], help="matrices that are updated at once")
    asked = parser.parse_args(arguments)
    print("| runs | rows | columns | warps | gradient | us | TB/s | the same |")
    print("|--:|--:|--:|--:|---|--:|--:|---|")
    for runs in asked.runs:
        for line in table(runs, asked.ways or ways()):
            print(line, flush=True)


if __name__ == "__main__":
    main()
