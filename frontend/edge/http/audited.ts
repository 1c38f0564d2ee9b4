import { ServeError } from '../../../common/errors.ts'
import { type AuditEntry, type AuditSubject, outcomeOf } from '../../observe/logs/audit-log.ts'
import type { HttpCall } from './http-call.ts'

export type { AuditSubject } from '../../observe/logs/audit-log.ts'

/**
 * Runs a management call, and writes its line in the audit log whatever its outcome. `subject` may be filled
 * while it runs, from a body for example.
 */
export async function audited<T>(
  call: HttpCall,
  operation: string,
  subject: AuditSubject,
  run: () => T | Promise<T>,
): Promise<T> {
  const { audit } = call.state
  if (audit === undefined) return run()
  const write = (status: number, error?: ServeError): void => {
    audit.write({
      ...call.auditFacts(),
      event: 'management',
      operation,
      ...subject,
      ...outcomeOf(error),
      status,
    })
  }
  try {
    const result = await run()
    write(call.res.statusCode)
    return result
  } catch (thrown) {
    const error = ServeError.from(thrown)
    write(call.refusal(error).status, error)
    throw error
  }
}

/**
 * The same for making a key, which asks for the API key; without that it is a failed authentication, which
 * the metrics count.
 */
export async function auditedKey(call: HttpCall, operation: string, run: () => Promise<void>): Promise<void> {
  const { audit, metrics } = call.state
  const write = (entry: Pick<AuditEntry, 'event' | 'who' | 'outcome' | 'code'>): void => {
    audit?.write({ ...call.auditFacts(), operation, ...entry })
  }
  try {
    await run()
    write({ event: 'keys', outcome: 'done', who: { name: 'API', kind: 'token' } })
  } catch (thrown) {
    const error = ServeError.from(thrown)
    const isWrong = error.code === 'INVALID_API_KEY'
    metrics.refusals.count(error, call.req.headers.authorization)
    // Without tokens there is no such route.
    if (error.code !== 'ROUTE_NOT_FOUND')
      write({ event: isWrong ? 'authentication' : 'keys', ...outcomeOf(error), who: undefined })
    throw error
  }
}
