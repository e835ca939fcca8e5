"""The mock's table of operations is section 4 of the specification."""

from contract import specification as spec

from followup_mockserver.contract.operations import OPERATIONS


def test_sections_4_and_5_the_32_rows() -> None:
    assert len(spec.OPERATIONS) == 32
    stated = {
        each.name: (each.method, each.path, each.scope, each.line, each.idem, each.id) for each in spec.OPERATIONS
    }
    served = {
        name: (
            each.method,
            each.path,
            each.row.scope,
            each.row.line,
            each.declaration.idempotent,
            each.declaration.id_prefix.prefix if each.declaration.id_prefix else None,
        )
        for name, each in OPERATIONS.items()
    }
    assert served == stated
