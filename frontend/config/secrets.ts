import { redactSecrets } from '../../common/redact.ts'
import { oneLine } from './properties.ts'

const SECRET = /(^|_)(pass|password|secret)$/

/** The text of a key as it may be shown: one line, without passwords. */
export function shownValue(name: string, text: string): string {
  if (SECRET.test(name)) return '***'
  return oneLine(redactSecrets(text))
}
