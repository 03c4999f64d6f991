"""The planners of the statements about staged changes."""

from __future__ import annotations

from streamsql.features.change import change_plans, plan

PLANNERS = plan.PLANNERS | change_plans.PLANNERS
