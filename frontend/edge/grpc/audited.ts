import { ServeError } from '../../../common/errors.ts'
import { type AuditLog, type AuditSubject, outcomeOf } from '../../observe/logs/audit-log.ts'
import type { CallError } from './call-error.ts'
import { type Call, principalOf } from './caller.ts'

export type { AuditSubject } from '../../observe/logs/audit-log.ts'

/** A management call, as the audit log names it. */
export interface Managed<Request> {
  readonly operation: string
  subject(request: Request): AuditSubject
}

interface Options<Request> extends Managed<Request> {
  readonly audit: AuditLog | undefined
  readonly toCallError: (error: ServeError, request: Request) => CallError
}

/** Runs a management call, and writes its line in the audit log whatever its outcome. */
export async function audited<Request, T>(
  call: Call,
  request: Request,
  run: () => T | Promise<T>,
  { audit, operation, subject, toCallError }: Options<Request>,
): Promise<T> {
  if (audit === undefined) return run()
  const { name, kind } = principalOf(call)
  const peer = call.getPeer()
  const write = (status: number, error?: ServeError): void => {
    audit.write({
      event: 'management',
      operation,
      ...outcomeOf(error),
      status,
      who: { name, kind },
      address: peer.slice(0, peer.lastIndexOf(':')),
      protocol: 'grpc',
      ...subject(request),
    })
  }
  try {
    const result = await run()
    write(0)
    return result
  } catch (thrown) {
    const error = ServeError.from(thrown)
    write(toCallError(error, request).code, error)
    throw error
  }
}
