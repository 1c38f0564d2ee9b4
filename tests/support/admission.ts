import type { ClientAdmission } from '../../frontend/edge/admission/admission.ts'
import { Budget } from '../../frontend/edge/admission/budget.ts'
import { CutWarnings } from '../../frontend/edge/admission/cut-warnings.ts'

const MAX_BYTES = 2 ** 28

/** What clients may have of a listener under test. */
export function testAdmission(more: Partial<ClientAdmission> = {}): ClientAdmission {
  return {
    requests: new Budget(MAX_BYTES),
    answers: new Budget(MAX_BYTES),
    waiting: new Budget(4_096),
    cuts: new CutWarnings(() => undefined),
    ...more,
  }
}
