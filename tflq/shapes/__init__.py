"""Shape inference on the tfl form: what an interpreter's Prepare finds, by the `infer` of each operator; binding of an
open batch."""
