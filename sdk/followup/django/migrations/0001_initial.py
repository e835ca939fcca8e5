"""Makes the tables of ``ddl()``. To undo it leaves them there, since they may have events that wait."""

from django.db import migrations
from django.db.migrations.state import ModelState

from followup.django.models import MODELS, make_tables


class Migration(migrations.Migration):
    """Version 1 of the outbox and of the inbox."""

    initial = True
    operations = [  # noqa: RUF012 - as in every migration
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(make_tables, migrations.RunPython.noop)],
            [
                migrations.CreateModel(each.name, list(each.fields.items()), each.options)
                for each in map(ModelState.from_model, MODELS)
            ],
        )
    ]
