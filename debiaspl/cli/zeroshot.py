"""``debiaspl zeroshot``: a classifier from class names alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli.options import (
    Device,
    Overwrite,
    Resume,
    Settings,
    TableColumns,
    columns_of,
    one_table,
    refuse_both,
)
from debiaspl.cli.terminal import (
    filled_table,
    note_new_run,
    plain_errors,
    print_table,
    progress_bar,
    resume_command,
    say,
)


def zeroshot_command(
    photos: Annotated[
        Path, typer.Argument(metavar="PHOTOS", help="A folder of photos, at any depth; no labels are needed.")
    ],
    classes: Annotated[str, typer.Option(help="Class names in plain English: 'river,forest', or a file, one a line.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="The teacher: a CLIP or SigLIP (hub name or folder), conse, or predictions in .npz, .npy or .csv.",
            show_default="conse",
        ),
    ] = None,
    student: Annotated[
        str,
        typer.Option(
            help="What is trained: efficientnet-lite0, a vision model (hub name or folder), resnet9, small, wrn-28-2."
        ),
    ] = "efficientnet-lite0",
    fine_tune: Annotated[
        bool, typer.Option("--fine-tune", help="Train the whole encoder, not its classifier alone; needs a GPU.")
    ] = False,
    templates: Annotated[
        str | None,
        typer.Option(
            help="Prompts: name, general, satellite, texture, digits, or a file of lines with {}.",
            show_default="the teacher's",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Lowest confidence of the teacher's labels that are used.",
            show_default="0.95; with --labels 0.4",
        ),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Read a few labels (file_name,label) to learn from too.", show_default="no labels"
        ),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read true labels (file_name,label), for the final table only.",
            show_default="no labels",
        ),
    ] = None,
    column: TableColumns = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder for predictions, runs and the table.")] = Path("runs/zeroshot"),
    device: Device = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Classify photos by class names alone, without labels.

    A zero-shot teacher labels photos it is sure of; a student learns from these and all others, without its bias.
    """
    with plain_errors():
        refuse_both(resume, overwrite)
        from debiaspl.data.class_names import read_class_names
        from debiaspl.data.table_form import Columns
        from debiaspl.encoders.feature_folder import FEATURES
        from debiaspl.encoders.templates import read_templates
        from debiaspl.recipes import RECIPES
        from debiaspl.report.runs import write_report
        from debiaspl.training.device import find_device
        from debiaspl.zeroshot.experiment import Experiment
        from debiaspl.zeroshot.photos import open_photos
        from debiaspl.zeroshot.student import HINTED, Student
        from debiaspl.zeroshot.teacher import find_teacher

        table, columns = one_table(labels), Columns(**columns_of(column))
        if columns != Columns() and table is None and evaluate is None:
            raise ValueError("--column names columns of a table. Give one: --labels or --evaluate.")
        names = read_class_names(classes)
        chosen = None if templates is None else read_templates(templates)
        learner = Student(student, fine_tune, settings=tuple(settings or ()))
        images = open_photos(photos, names)
        teacher = find_teacher(
            model, min(images.images.shape[2:]), out.resolve().parent / FEATURES, find_device(device)
        )
        if model is None:
            say(f"No --model: the teacher is {teacher.about}")
        experiment = Experiment(
            photos=photos,
            classes=names,
            teacher=teacher,
            templates=chosen or read_templates(teacher.default_templates),
            confidence=confidence if confidence is not None else 0.95 if table is None else HINTED,
            student=learner,
            labels=table,
            columns=columns,
            images=images,
        )
        note_new_run(resume, out, ".zeroshot")
        with progress_bar("images") as show:
            found = experiment.run(out, evaluate, resume, device, say, show, resume_command(), overwrite)
        _print(found.rows, teacher, evaluate)
        if found.check is not None:
            _print_check(found.check)
        where = "they are the teacher's own. The student that it taught" if found.teacher_is_used else "the model"
        where = f"{where}: {found.model}"
        say(f"Labels of every photo: {out / 'predictions.csv'}; {where}")
        say(f"The report is {write_report(found.runs, out / 'report.html', RECIPES)}")


def _print(rows: list[Any], teacher: Any, evaluate: Path | None) -> None:
    from debiaspl.zeroshot.check import against_labels
    from debiaspl.zeroshot.table import HEADER, column_notes

    measured = (
        f"Accuracy and worst %: on the {int((rows[0].truth >= 0).sum()):,} photos of {evaluate}, "
        "which was used for nothing else."
        if evaluate
        else ("The accuracy is not known. To measure it with true labels: --evaluate truth.csv.")
    )
    print_table(filled_table(HEADER, [row.cells() for row in rows]))
    say(f"{measured} {column_notes(rows)} {teacher.note}")
    if evaluate:
        say(against_labels(teacher.name, rows[0].label, rows[0].truth, rows[0].num_classes))


def _print_check(check: Any) -> None:
    """With given labels: how many each model predicts right, and whose predictions are used."""
    from debiaspl.zeroshot.check import HEADER

    print_table(filled_table(HEADER, check.cells))
    say("Each label was predicted by a student that did not learn from it.")
    say(f"Used: {check.chosen}, because {check.why}.")
