"""Facts about maps of estimators: a cell names the one with the least error, and says what ke loses there."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb

from maxmean.lab.figures import colour_of
from maxmean.lab.maps import draw_map


def test_a_cell_has_the_least_error_and_what_ke_loses() -> None:
    """Two values of y, given from the lower one up, by two of x; ke is the best of the last one alone."""
    index = pd.MultiIndex.from_product([[5, 10], [10_000, 1_000_000]])
    errors = pd.DataFrame(
        {"me": [1.0, 2.0, 4.0, 9.0], "we": [2.0, 1.0, 4.0, 9.0], "te": 3.0, "ke": [1.5, 1.1, 6.0, 2.0]}, index
    )
    figure = draw_map({"above": {"left": errors, "right": errors}}, "across", "up")
    assert len(figure.axes) == 2
    for ax in figure.axes:
        found = {(int(text.get_position()[0]), int(text.get_position()[1]), text.get_text()) for text in ax.texts}
        expected = {
            (0, 0, "me"),
            (0, 0, "+50%"),
            (1, 0, "we"),
            (1, 0, "+10%"),
            (0, 1, "te"),
            (0, 1, "+100%"),
            (1, 1, "ke"),
        }
        assert expected <= found
        assert len(found - expected) == (ax is figure.axes[0])  # the heading
        assert [label.get_text() for label in ax.get_xticklabels()] == ["10k", "1M"]
        colours = np.asarray(ax.collections[0].get_array()).reshape(-1, 3)
        np.testing.assert_allclose(colours, [to_rgb(colour_of(name)) for name in ("me", "we", "te", "ke")])
    assert [text.get_text().partition(":")[0] for text in figure.legends[0].get_texts()] == [
        "me",
        "we",
        "te",
        "ke",
        "+9%",
    ]


def test_a_map_is_no_wider_than_a_page() -> None:
    """Whatever the number of cells, their text is as large beside that of the page; with few there is room for more."""
    index = pd.MultiIndex.from_product([[1, 2], [1, 2, 3, 4, 5]])
    errors = pd.DataFrame({"me": 1.0, "ke": 2.0}, index)
    figure = draw_map({"": {str(k): errors for k in range(5)}}, "x", "y")
    assert figure.get_size_inches()[0] < 10
