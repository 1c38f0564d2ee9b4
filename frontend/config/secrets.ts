import { redactSecrets } from '../../common/redact.ts'
import { oneLine } from './properties.ts'

const SECRET = /(^|_)(pass|password|secret)$/

/** Names of variables. Who writes `NAME=value` there by mistake may have written a secret. */
const NAMES: ReadonlySet<string> = new Set(['worker_env', 'model_env'])

/** The value of a key for display: one line, without passwords. */
export function shownValue(name: string, text: string): string {
  if (SECRET.test(name)) return '***'
  // To the end: the value of a variable may have commas.
  if (NAMES.has(name)) return oneLine(text.replace(/=.*/s, '=***'))
  return oneLine(redactSecrets(text))
}
