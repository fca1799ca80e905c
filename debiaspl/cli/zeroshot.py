"""``debiaspl zeroshot``: a classifier from class names alone."""

from pathlib import Path
from typing import Annotated

from debiaspl.cli import options
from debiaspl.cli.options import argument, file, option
from debiaspl.cli.terminal import note_new_run, print_table, progress_bar, resume_command, say


def zeroshot_command(
    classes: Annotated[str, option("Class names in plain English: 'river,forest', a file, one a line, or imagenet.")],
    photos: Annotated[
        Path | None, argument("PHOTOS", "A folder of photos, at any depth; no labels are needed.", "--features")
    ] = None,
    model: Annotated[
        str | None,
        option(
            "The teacher: a CLIP or SigLIP (hub name or folder), conse, or predictions in .npz, .npy or .csv.", "conse"
        ),
    ] = None,
    student: Annotated[
        str, option("The encoder whose features are used: efficientnet-lite0, or a vision model (hub name or folder).")
    ] = "efficientnet-lite0",
    templates: Annotated[
        str | None,
        option(
            "Prompts: name, general, imagenet, satellite, texture, digits, or a file of lines with {}.", "the teacher's"
        ),
    ] = None,
    per_class: Annotated[
        int | None, option("Label this many photos of each class, those the teacher is surest of.", "20", min=1)
    ] = None,
    confidence: Annotated[
        float | None,
        option(
            "Use every label of the teacher from this confidence on instead.", "none; with --labels 0.4", min=0, max=1
        ),
    ] = None,
    labels: Annotated[Path | None, file("Read a few labels (file_name,label) to learn from too.", "no labels")] = None,
    evaluate: Annotated[
        Path | None, file("Read true labels (file_name,label), for the final table only.", "no labels")
    ] = None,
    column: options.TableColumns = None,
    features: options.Features = None,
    settings: options.Settings = None,
    out: Annotated[Path, option("Folder for predictions, runs and the table.")] = Path("runs/zeroshot"),
    device: options.Device = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Classify photos by class names alone, without labels.

    A zero-shot teacher labels photos it is sure of; a student learns from these and all others, without its bias.
    """
    options.refuse_both(resume, overwrite)
    from debiaspl.encoders.feature_folder import FEATURES
    from debiaspl.encoders.templates import read_templates
    from debiaspl.report.runs import write_report
    from debiaspl.training.process import find_device
    from debiaspl.zeroshot.check import against_labels
    from debiaspl.zeroshot.conse import named_classes
    from debiaspl.zeroshot.experiment import Experiment
    from debiaspl.zeroshot.predictions import HEADER, PER_CLASS, column_notes
    from debiaspl.zeroshot.student import Student
    from debiaspl.zeroshot.teacher import find_teacher, lite0_size, open_photos

    columns = options.table_columns(column)
    if column and labels is None and evaluate is None:
        raise ValueError("--column names columns of a table. Give one: --labels or --evaluate.")
    if per_class is not None and (confidence is not None or labels is not None):
        other = "--labels" if confidence is None else "--confidence"
        raise ValueError(f"--per-class and {other} are both given, expected one of them. Leave one out.")
    names = named_classes(classes)
    chosen = None if templates is None else read_templates(templates)
    learner = Student(student, tuple(settings or ()))
    photos, features = options.photos_or_features(photos, features)
    images, kept = open_photos(photos, names), features or out.resolve().parent / FEATURES
    teacher = find_teacher(model, lite0_size(images, features), kept, find_device(device))
    say(f"The teacher is {teacher.about}")
    experiment = Experiment(
        photos=photos,
        classes=names,
        teacher=teacher,
        templates=chosen or read_templates(teacher.default_templates),
        confidence=confidence,
        student=learner,
        labels=labels,
        columns=columns,
        features=features,
        images=images,
        per_class=per_class or PER_CLASS,
    )
    note_new_run(resume, out, ".zeroshot")
    with progress_bar("images") as show:
        rows, used = experiment.run(out, evaluate, resume, device, say, show, resume_command(), overwrite)
    print_table(HEADER, [row.cells() for row in rows])
    measured = "The accuracy is not known. To measure it with true labels: --evaluate truth.csv."
    if evaluate is not None:
        known = f"the {rows[0].confusion.images:,} photos of {evaluate}"
        others = "" if labels is None else f" without a label in {labels}"
        measured = f"Accuracy and worst %: on {known}{others}, whose labels were used for nothing else."
    say(f"{measured} {column_notes(rows)}")
    if evaluate is not None:
        say(against_labels(teacher.name, rows[0].confusion))
    if used.rows:
        print_table(used.rows[0].header, [row.cells for row in used.rows])
        say("Each label was predicted by a student that did not learn from it.")
    say(f"Used: {used.chosen}, because {used.why}.")
    where = "they are the teacher's own. The student that it taught" if used.chosen == rows[0].method else "the model"
    say(f"Labels of every photo: {out / 'predictions.csv'}; {where}: {out}")
    say(f"The report is {write_report([out], out / 'report.html', photos)}")
