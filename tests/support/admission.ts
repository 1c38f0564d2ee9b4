import type { ClientAdmission } from '../../frontend/edge/admission/admission.ts'
import { Budget } from '../../frontend/edge/admission/budget.ts'
import { CutWarnings } from '../../frontend/edge/admission/cut-warnings.ts'

/** What clients may have of a listener under test. */
export function testAdmission(more: Partial<ClientAdmission> = {}): ClientAdmission {
  return { waiting: new Budget(4_096), cuts: new CutWarnings(() => undefined), ...more }
}
