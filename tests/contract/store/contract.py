"""What every store must do. Each clause gets a fresh, empty store and fails by an assertion."""

from tests.contract.store import questions, transactions

CLAUSES = (*transactions.CLAUSES, *questions.CLAUSES)
