"""The eight algorithms' update in plain PyTorch, written from the paper: a module for each network, PyTorch's own optimisers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor, nn

from maxmean.deep.networks import Dense, Weights

if "torch._dynamo" not in sys.modules:  # an optimiser would import PyTorch's compiler, for seconds, to keep it out
    compiler = sys.modules["torch._dynamo"] = torch._dynamo = ModuleType("torch._dynamo")
    vars(compiler).update(disable=lambda function, *_, **__: function, graph_break=lambda: None)

Rule = Callable[[Tensor, Tensor], Tensor]
"""From the target's and the online network's values [members, actions] of one next state to the members' values."""


class Network(nn.Module):
    """A convolution and K heads, each with a hidden layer and an output of its own."""

    def __init__(self, shape: tuple[int, int, int], filters: int, hidden: int, actions: int, heads: int) -> None:
        super().__init__()
        rows, columns, channels = shape
        self.conv = nn.Conv2d(channels, filters, 3)
        features = filters * (rows - 2) * (columns - 2)
        self.hidden = nn.ModuleList(nn.Linear(features, hidden) for _ in range(heads))
        self.output = nn.ModuleList(nn.Linear(hidden, actions) for _ in range(heads))
        self.map = (filters, rows - 2, columns - 2)

    def forward(self, seen: Tensor) -> Tensor:
        """From images [batch, channels, rows, columns] to [batch, heads, actions]."""
        features = torch.relu(self.conv(seen)).flatten(1)
        heads = [out(torch.relu(hid(features))) for hid, out in zip(self.hidden, self.output, strict=True)]
        return torch.stack(heads, 1)

    def load(self, weights: Weights) -> None:
        """Take the weights from ours: places before channels there, channels before places here."""
        filters, rows, columns = self.map
        with torch.no_grad():
            ours = _tensor(weights.trunk.weights).reshape(filters, 3, 3, -1)
            self.conv.weight.copy_(ours.permute(0, 3, 1, 2))
            self.conv.bias.copy_(_tensor(weights.trunk.bias))  # type: ignore[union-attr]
            matrices = _tensor(weights.hidden.weights).reshape(len(self.hidden), -1, rows, columns, filters)
            biases = _tensor(weights.hidden.bias).reshape(len(self.hidden), -1)
            for k, (hid, out) in enumerate(zip(self.hidden, self.output, strict=True)):
                hid.weight.copy_(matrices[k].permute(0, 3, 1, 2).flatten(1))  # type: ignore[operator]
                hid.bias.copy_(biases[k])  # type: ignore[operator]
                out.weight.copy_(_tensor(weights.output.weights[k]))  # type: ignore[operator]
                out.bias.copy_(_tensor(weights.output.bias[k]))  # type: ignore[operator]

    def ours(self, part: Callable[[Any], Tensor] = lambda parameter: parameter.detach()) -> Weights:
        """The parameters, or something that belongs to each of them, in our layout."""
        filters, rows, columns = self.map
        conv = part(self.conv.weight).permute(0, 2, 3, 1).flatten(1)
        matrices = [
            part(h.weight).reshape(-1, filters, rows, columns).permute(0, 2, 3, 1).flatten(1) for h in self.hidden
        ]
        return Weights(
            Dense(_array(conv), _array(part(self.conv.bias))),
            Dense(_array(torch.cat(matrices)), _array(torch.cat([part(h.bias) for h in self.hidden]))),
            Dense(
                _array(torch.stack([part(o.weight) for o in self.output])),
                _array(torch.stack([part(o.bias) for o in self.output])),
            ),
        )


@dataclass
class Transitions:
    """A batch: images [B, C, R, C], everything else [B] or [B, heads]."""

    seen: Tensor
    actions: Tensor
    rewards: Tensor
    terminated: Tensor
    next_seen: Tensor
    masks: Tensor


class Trainer:
    """One algorithm: K heads on one network, or several networks of which one learns at a time."""

    def __init__(
        self, networks: Sequence[Network], rule: Rule, optimizer: str, loss: str, rate: float, discount: float
    ) -> None:
        self.online, self.rule, self.discount = list(networks), rule, discount
        self.target = copy.deepcopy(self.online)
        make: Any = {
            "adam": lambda p: torch.optim.Adam(p, lr=rate, eps=1e-8),
            "rmsprop": lambda p: torch.optim.RMSprop(p, lr=rate, alpha=0.99, eps=1e-8),
        }[optimizer]
        self.optimizers = [make(network.parameters()) for network in self.online]
        self.criterion = nn.MSELoss() if loss == "mse" else nn.HuberLoss()

    def copy(self) -> None:
        self.target = copy.deepcopy(self.online)

    def targets(self, batch: Transitions) -> Tensor:
        """Y [B, members], one transition after the other."""
        rows = []
        with torch.no_grad():
            target = torch.cat([network(batch.next_seen) for network in self.target], 1)
            online = torch.cat([network(batch.next_seen) for network in self.online], 1)
            for b in range(len(batch.actions)):
                y = batch.rewards[b].expand(target.shape[1]).clone()
                if not batch.terminated[b]:
                    y += self.discount * self.rule(target[b], online[b])
                rows.append(y)
        return torch.stack(rows)

    def update(self, batch: Transitions, learns: int = 0) -> float:
        """One step of the network ``learns``; the loss before it."""
        y = self.targets(batch)
        network, optimizer = self.online[learns], self.optimizers[learns]
        values = network(batch.seen)
        heads = values.shape[1]
        total = 0.0 * values.sum()  # a network that learns from nothing still has its gradient, which is zero
        for k in range(heads):
            column = learns if len(self.online) > 1 else k
            mine = batch.masks[:, column]
            if mine.any():
                q = values[mine, k].gather(1, batch.actions[mine, None])[:, 0]
                total = total + self.criterion(q, y[mine, column])
        optimizer.zero_grad(set_to_none=False)
        total.backward()
        for parameter in network.conv.parameters():
            parameter.grad /= heads
        optimizer.step()
        return float(total.detach())

    def moments(self, network: int, name: str) -> Weights:
        """The optimiser's averages of one network (``exp_avg``, ``exp_avg_sq`` or ``square_avg``), in our layout."""
        state = self.optimizers[network].state
        return self.online[network].ours(lambda parameter: state[parameter][name])


def dqn(target: Tensor, online: Tensor) -> Tensor:
    return target.max(1).values


def ddqn(target: Tensor, online: Tensor) -> Tensor:
    return torch.stack([head[other.argmax()] for head, other in zip(target, online, strict=True)])


def scdqn(beta: float) -> Rule:
    def rule(target: Tensor, online: Tensor) -> Tensor:
        corrected = target - beta * (target - online)
        return torch.stack([head[other.argmax()] for head, other in zip(target, corrected, strict=True)])

    return rule


def maxmin(target: Tensor, online: Tensor) -> Tensor:
    return target.min(0).values.max().expand(len(target))


def te(alphas: Sequence[float], covariance: bool = False) -> Rule:
    """The mean over the actions that a test at level alpha does not find worse than the best one, head by head."""
    thresholds = [NormalDist().inv_cdf(alpha) for alpha in alphas]

    def rule(target: Tensor, online: Tensor) -> Tensor:
        found = []
        for k, statistic in enumerate(statistics(target, covariance)):
            found.append(target[k][statistic >= thresholds[k]].mean())
        return torch.stack(found)

    return rule


def ke(target: Tensor, online: Tensor) -> Tensor:
    """Weights from the Gaussian distribution function."""
    weights = 0.5 * torch.erfc(-statistics(target, False) / 2**0.5)
    return (weights * target).sum(1) / weights.sum(1)


def statistics(target: Tensor, covariance: bool) -> Tensor:
    """T of each head and action; the variances are those across the heads."""
    table = torch.cov(target.T)  # between actions, divided by heads - 1
    if not covariance:
        table = torch.diag(torch.diag(table))
    rows = []
    for head in target:
        best = int(head.argmax())
        row = []
        for a in range(len(head)):
            variance = table[a, a] + table[best, best] - 2 * table[a, best] * (a != best)
            row.append(torch.zeros(()) if a == best else (head[a] - head[best]) / variance.sqrt())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def _tensor(array: Any) -> Tensor:
    return torch.as_tensor(np.array(array))


def _array(tensor: Tensor) -> Any:
    return jnp.asarray(tensor.detach().contiguous().numpy().copy())
