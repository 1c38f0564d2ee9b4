import { redactSecrets } from '../../common/texts.ts'
import { oneLine } from './properties.ts'

const SECRET = /(^|_)(pass|password|secret)$/

/** The value of a key for display: one line, without passwords. */
export function shownValue(name: string, text: string): string {
  if (SECRET.test(name)) return '***'
  return oneLine(redactSecrets(text))
}
