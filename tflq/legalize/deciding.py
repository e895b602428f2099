"""The path of an operator: the first of these that it can take.

    user         a rule that the user gives (`tflq.Extension`)
    as it is     it has no quantized tensor; or it is custom or recurrent, and its tensors stay behind `quant.scast`
    hybrid       it computes in float on quantized constants, and a kernel takes these
    kernel       the target has a kernel for its signature
    rule         the integer rules of its class, in order
    float        dequantize → the float operator → requantize, if that is allowed

Otherwise it is refused. A recurrent operator that has a kernel, but may not be kept, takes its rules or is refused: in
float it would have another state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, Literal

from tflq.base.errors import Refused, TflqError, VerificationError
from tflq.base.faults import fault_of_rule, name_of
from tflq.base.sized import TooLarge
from tflq.dialects.builder import refined
from tflq.dialects.declare import trait_of
from tflq.dialects.effects import is_handle, is_hybrid
from tflq.dialects.forms import UNQUANTIZED, is_recurrent, stays_quantized_reason, verify_form
from tflq.dialects.inference import Misfit
from tflq.dialects.parameters import LacksKernel
from tflq.dialects.quant import Dcast, Qcast
from tflq.dialects.tfl.casts import Dequantize
from tflq.dialects.tfl.state import Custom
from tflq.ir.module import Function, Module
from tflq.ir.ops import Op, Value, constant
from tflq.ir.types import TensorType
from tflq.ir.verifier import verify_ops
from tflq.legalize.calls import misread
from tflq.legalize.caveats import BY_PARAMETERS, disregarded, inexact, remedies, settled, unlike_kernel, without_kernel
from tflq.legalize.differing import Queries
from tflq.legalize.rule import MARK, Memory, NotApplicable, Rewritten, Rule, RuleBuilder, Variables, rewritten, rules_of
from tflq.numerics.kernel_sets import REFERENCE
from tflq.numerics.reference import KernelSet
from tflq.targets.target import INTEGER, Target
from tflq.transforms.pass_manager import Decision

if TYPE_CHECKING:
    from tflq.legalize.target_kernels import TargetKernels


def unchanged(op: Op, reason: str, warning: str) -> Decision:
    """An operator that stays as it is. A warning says which parameters its kernel ignores."""
    exception = "disregarded" if warning else ""
    return Decision(op, "kept", reason, warning, exception, remedies([exception]))


Semantics = Literal["interpreter", "real"]
State = Literal["kept", "variables", "lowered"]

_UNKNOWN = "how kernels compute {} under {} is not known here: the result is the reference kernel's"
_OUTLIVES = "its state is in resource variables, which reset_all_variables() does not reset"


class Policy:
    """Options of a conversion.

    fallback: an operator without a rule is computed in float.
    state: operators with variable tensors are "kept", or their rules make variables: of TFLite ("variables", with a
    warning, since they outlive `reset_all_variables()`) or of TOSA ("lowered").
    semantics: what holds where a reference kernel disregards quantization parameters: the kernel ("interpreter", with
    a warning), or the parameters ("real").
    target: whose quantized kernels are kept. rules: the user's, by custom code or class (`tflq.Extension`).
    close: bounds of sums are noted as close as the weights say, since selection proves forms with them.
    kernel_set: the kernels that results are exact for.
    """

    __slots__ = ("close", "fallback", "kernel_set", "rules", "semantics", "state", "target")

    def __init__(
        self,
        fallback: bool = True,
        state: State = "kept",
        semantics: Semantics = "interpreter",
        target: Target = INTEGER,
        rules: Mapping[str | type[Op], Sequence[Rule]] | None = None,
        close: bool = True,
        kernel_set: KernelSet = REFERENCE,
    ) -> None:
        self.fallback: Final = fallback
        self.state: Final = state
        self.semantics: Final = semantics
        self.target: Final = target
        self.rules: Final[Mapping[str | type[Op], Sequence[Rule]]] = {} if rules is None else rules
        self.close: Final = close
        self.kernel_set: Final = kernel_set

    @property
    def real(self) -> bool:
        return self.semantics == "real"


class _Case:
    """An operator whose path is looked for. `missing`: why no kernel of TFLite computes it as it is; `narrow`: why no
    rule does, if it has tensors of less than 8 bits; `unlike`, `repeated`: what a recurrent operator's kernel gets
    wrong, and why it goes through its sequence more than once; `reasons`: why the paths tried so far do not apply;
    `not_kernel`: why the target's kernel does not; `warnings`: with the exception that each is."""

    __slots__ = (
        "hybrid",
        "missing",
        "narrow",
        "not_kernel",
        "op",
        "reasons",
        "recurrent",
        "remedy",
        "repeated",
        "unlike",
        "warnings",
    )

    def __init__(
        self,
        op: Op,
        recurrent: bool,
        hybrid: bool,
        missing: str,
        narrow: str,
        reasons: list[str],
        warnings: dict[str, str],
        unlike: str = "",
        repeated: str = "",
        not_kernel: str = "",
        remedy: str = "",
    ) -> None:
        self.op = op
        self.recurrent = recurrent
        self.hybrid = hybrid  # it computes in float on quantized constants
        self.missing = missing
        self.narrow = narrow
        self.reasons = reasons
        self.warnings = warnings
        self.unlike = unlike
        self.repeated = repeated
        self.not_kernel = not_kernel
        self.remedy = remedy  # about the warnings; else it follows from what kind of exceptions they are


class Decider:
    """Decides for the operators of one function, and emits what becomes of them with its builder."""

    def __init__(self, policy: Policy, plain: dict[Value, Value], variables: Variables, memory: Memory) -> None:
        self.plain = plain
        self._queries = Queries(policy.kernel_set)
        self.b = RuleBuilder(
            [],
            plain,
            variables,
            real=policy.real,
            close=policy.close,
            memory=memory,
            kernel_set=self._queries,
        )
        self._policy = policy
        self._kernels: TargetKernels | None = None
        if policy.target.kernels or policy.target.complete:
            from tflq.legalize.target_kernels import TargetKernels

            self._kernels = TargetKernels(policy.target, plain, self.b)

    def decide(self, op: Op) -> Decision:
        """The decision on an operator that calls no function. Refused if it can take no path."""
        declined: list[str] = []
        self._queries.begin(op)
        if self._policy.rules and (decision := self._by_user_rule(op, declined)) is not None:
            return decision
        decision = self._without_user_rule(op)
        decision.not_rule = "; ".join(declined)
        decision.differs_under = () if decision.path == "kept" else self._queries.differing()
        return decision

    def _without_user_rule(self, op: Op) -> Decision:
        if not any(v.type.quantized for v in op.tensors):
            self._pass_through(op)
            return Decision(op, "kept", UNQUANTIZED)
        if op.info.get(MARK):
            self.keep(op)
            return unchanged(op, "its constant stays quantized: weight-only quantization", "")
        case = self._case(op)
        if unknown := self._queries.unknown():
            case.warnings[_UNKNOWN.format(unknown, self._policy.kernel_set.name)] = "inexact"
        decision = self._as_it_is(case) or self._as_hybrid(case) or self._by_kernel(case) or self._by_rule(case)
        decision = decision or self._in_float(case)
        decision.not_kernel = case.not_kernel
        if decision.exception != "broken" and all(0 in v.type.dims for v in op.results):
            decision.warning = decision.exception = decision.remedy = ""  # no value shows it
        return decision

    def keep(self, op: Op) -> None:
        """The operator with its own quantized tensors."""
        self._pass_through(op)
        for result in op.results:
            if result.type.quantized:
                self.plain[result] = self.b.scast(result, result.type.stripped())

    def _by_user_rule(self, op: Op, declined: list[str]) -> Decision | None:
        """Tries the rules that a user gives for its class, or for the code of a custom operator. `declined` gets the
        reasons of those that do not apply."""
        key = op.code if isinstance(op, Custom) else type(op)
        for rule in self._policy.rules.get(key, ()):
            start = len(self.b.ops)
            try:
                answer = rewritten(rule(op, self.b))
                self._name_results(op, answer.results, start)
                self._verify(self.b.ops[start:], op)
            except NotApplicable as why_not:
                del self.b.ops[start:]
                declined.append(f"rule '{name_of(rule)}': {str(why_not) or 'it does not apply'}")
                continue
            except Misfit as error:
                raise fault_of_rule(error, rule, op.location, op.name) from error
            except Refused:
                raise
            except Exception as error:
                if isinstance(error, VerificationError) or not isinstance(error, TflqError):
                    raise fault_of_rule(error, rule, op.location, op.name) from error
                error.add_note(f"in the rule '{name_of(rule)}' for {op.location or op.name}")
                raise
            floats = any(v.type.storage.is_float for new in self.b.ops[start:] for v in new.results)
            exception = answer.exception if answer.warning else ""
            return Decision(op, "float" if floats else "integer", answer.note, answer.warning, exception, rule=rule)
        return None

    def _verify(self, ops: Sequence[Op], op: Op) -> None:
        """VerificationError if a user's rule emitted invalid IR for an operator."""
        emitted = {v for new in ops for v in new.results}
        used = {v for new in ops for v in new.present_operands if v not in emitted}
        known = {v for v in used if v.producer is None} | {self.plain.get(v, v) for v in op.present_operands}
        if not used <= known:
            known |= {v for other in self.b.ops for v in other.results} - emitted
        function = Function(op.name, [], op.results, list(ops))
        verify_ops(function, known)
        verify_form(Module([function]), "integer")

    def _case(self, op: Op) -> _Case:
        real, stateful, hybrid = self._policy.real, is_recurrent(op), is_hybrid(op)
        narrow = "" if isinstance(op, (Dequantize, Dcast, Qcast)) else _narrow(op)
        case = _Case(op, stateful, hybrid, "", narrow, [], {} if real else misread(op))
        if stateful:
            from tflq.legalize import recurrent

            leaves = ("lowered",) if hybrid else ("lowered", "variables")
            case.missing = recurrent.without_kernel(op, real=real, stays=self._policy.state not in leaves)
            if not case.missing:
                case.unlike, case.repeated = recurrent.misread(op), recurrent.repeated(op)
        elif hybrid:
            case.missing = without_kernel(op, real=real)
        return case

    def _as_it_is(self, case: _Case) -> Decision | None:
        op, leaves = case.op, case.missing or case.hybrid or self._policy.state != "kept"
        reason = stays_quantized_reason(op)
        if reason is None or (case.recurrent and leaves):
            return None
        self.keep(op)
        return unchanged(op, reason, case.unlike)

    def _as_hybrid(self, case: _Case) -> Decision | None:
        if case.hybrid and self._kernels is not None and not case.missing:
            case.missing = self._kernels.hybrid(case.op)
            if case.missing and not self.b.real:
                from tflq.analysis.hybrid import REMEDY, rounding_of

                if text := rounding_of(case.op, "float operators"):
                    case.warnings[text], case.remedy = "inexact", REMEDY
        if case.hybrid and not case.missing:
            self._pass_through(case.op)
            warning = _joined(case.unlike, case.repeated) if case.recurrent else disregarded(case.op)
            return unchanged(case.op, "hybrid: floats with quantized constants", warning)
        case.reasons += [why for why in (case.missing, case.narrow) if why]
        return None

    def _by_kernel(self, case: _Case) -> Decision | None:
        if self._kernels is None or not self._policy.target.kernels or case.hybrid or case.missing:
            return None
        verdict = self._kernels.keep(case.op)
        if verdict.runs:
            warning = self._unlike_kernel(case.op) if self._policy.target.by_parameters else ""
            return Decision(case.op, "kept", verdict.reason, warning, remedy=BY_PARAMETERS if warning else "")
        case.reasons.append(verdict.reason)
        case.not_kernel = self._policy.target.why_not(case.op)
        return None

    def _unlike_kernel(self, op: Op) -> str:
        """The difference of the interpreter's kernel from the parameters, as the operator's first rule tells it;
        empty if there is none."""
        start = len(self.b.ops)
        try:
            for rule in rules_of(type(op)):
                self.b.undefined.clear()
                try:
                    return unlike_kernel(rule, op, rewritten(rule(op, self.b)), self.b)
                except NotApplicable:
                    continue
        finally:
            del self.b.ops[start:]
        return ""

    def _by_rule(self, case: _Case) -> Decision | None:
        """The decision by the first rule that applies. Else by one that does where sizes that the model computes
        are constants, as far as these are known for every batch."""
        if case.hybrid or case.missing or case.narrow:
            return None
        reasons, warnings = [*case.reasons], {**case.warnings}
        decision = self._by_rule_of(case)
        if decision is not None or (sized := self._with_known_sizes(case.op)) is None:
            return decision
        again = copy(case)
        again.op, again.reasons, again.warnings = sized, reasons, warnings
        return self._by_rule_of(again)

    def _with_known_sizes(self, op: Op) -> Op | None:
        """The operator with constants in the place of computed integers that are all known; None if there are none."""
        operands = list(op.operands)
        for place, value in enumerate(op.operands):
            if value is None or value.is_constant or value.type.quantized or not value.type.storage.is_integer:
                continue
            known = self.b.known_elements(value)
            if known is not None and known.complete:
                operands[place] = constant(known.array)
        return None if operands == op.operands else op.copy_with(operands)

    def _by_rule_of(self, case: _Case) -> Decision | None:
        for rule in rules_of(type(case.op)):
            start = len(self.b.ops)
            self.b.undefined.clear()
            try:
                answer = self._answer(rule, case.op)
            except NotApplicable as why_not:
                del self.b.ops[start:]
                case.reasons += [str(why_not)] if str(why_not) else []
                if not self.b.real:
                    case.warnings.update(inexact(rule, case.op, why_not, self.b))
                continue
            self._name_results(case.op, answer.results, start)
            if answer.warning:
                case.warnings.setdefault(answer.warning, answer.exception)
            if case.recurrent and self._policy.state == "variables":
                case.warnings[_OUTLIVES] = "state"
            return self._warned(Decision(case.op, "integer", answer.note, rule=rule), case)
        return None

    def _answer(self, rule: Rule, op: Op) -> Rewritten:
        """The answer of a rule. NotApplicable also if parameters must hold, as where no kernel takes the types, and
        the result does not follow them."""
        try:
            answer = settled(rule, op, rewritten(rule(op, self.b)), self.b)
        except TooLarge as why:
            raise NotApplicable(str(why)) from None
        _need_types(op, answer.results)
        lacks = trait_of(op, LacksKernel)
        if answer.warning and (self.b.real or (lacks is not None and lacks.concerns(op))):
            raise NotApplicable(answer.warning)
        return answer

    def _in_float(self, case: _Case) -> Decision:
        op = case.op
        reason = "; ".join(dict.fromkeys(case.reasons)) or f"{op.name[4:].upper()} has no integer rule"
        if case.recurrent and not case.missing:
            remedy = "" if self._policy.state == "lowered" else "; keep it as it is (state 'kept')"
            raise Refused(reason + remedy)
        if not self._policy.fallback:
            raise Refused(reason, "without --fallback error it is computed in float")
        from tflq.legalize.fallback import beyond_floats, fall_back

        start = len(self.b.ops)
        try:
            results = fall_back(op, self.b)
            _need_types(op, results)
        except (NotApplicable, TooLarge) as why_not:
            raise Refused(f"{reason}; {why_not}") from None
        self._name_results(op, results, start)
        if (beyond := beyond_floats(op)) and not case.warnings:
            case.warnings[beyond] = "inexact"
        return self._warned(Decision(op, "float", reason), case)

    def _warned(self, decision: Decision, case: _Case) -> Decision:
        """A decision with its warnings."""
        decision.warning = _joined(*case.warnings)
        decision.exception = next(iter(case.warnings.values()), "")
        decision.remedy = case.remedy or remedies(case.warnings.values())
        return decision

    def _pass_through(self, op: Op) -> None:
        self.b.ops.append(op.copy_with([None if v is None else self.b.typed(v) for v in op.operands]))

    def _name_results(self, op: Op, results: Sequence[Value], start: int) -> None:
        if len(results) != len(op.results):
            raise AssertionError(f"rule for {op.name} gave {len(results)} results for {len(op.results)}")
        fresh = {v for emitted in self.b.ops[start:] for v in emitted.results}
        for old, new in zip(op.results, results, strict=True):
            if new.type.storage != old.type.storage:
                raise AssertionError(f"rule for {op.name} gave {new.type.storage} for {old.type.storage}")
            shape = refined(old.type.shape, new.type.shape)
            if new not in fresh:
                new = self.b.identity(new)
            fresh.discard(new)
            if shape != new.type.shape and new.producer is not None and new.producer.name.startswith("quant."):
                new = self.b.restated(new, shape)  # a cast has the shape of its operand
            new.name = old.name
            new.type = TensorType(shape, new.type.element)
            self.plain[old] = new


def _need_types(op: Op, results: Sequence[Value]) -> None:
    """NotApplicable if a result is stated in another type than the operator gives."""
    for old, new in zip(op.results, results, strict=False):
        if new.type.storage != old.type.storage:
            raise NotApplicable(f"'{old.name}' is stated as {old.type.storage}, and {new.type.storage} comes out")


def _joined(*sentences: str) -> str:
    return "; ".join(s for s in sentences if s)


def _narrow(op: Op) -> str:
    """Why no rule covers an op that computes on tensors of less than 8 bits, or of elements that are not numbers
    here (strings, bf16). Empty for other ops."""
    for value in op.tensors:
        if not value.type.storage.numpy and not is_handle(value):
            return f"no rule computes on '{value.name}' of {value.type.storage}"
        if value.type.storage.bits < 8 and value.type.quantized and not value.is_constant:
            return f"no kernel on plain integers reads or writes '{value.name}' of {value.type.storage}"
    return ""
