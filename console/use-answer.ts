import { useEffect, useState } from 'preact/hooks'
import { type Api, reasonOf } from './api.ts'
import type { ServerState } from './server-state.ts'

/** What the server answered, or why it did not; neither: it has not yet. */
export interface Asked<Answer> {
  readonly answer?: Answer
  readonly reason?: string
}

/** Asks the server once, and again when another process serves. */
export function useAnswer<Answer>(
  { overview }: ServerState,
  api: Api,
  ask: (api: Api) => Promise<Answer>,
): Asked<Answer> {
  const [asked, setAsked] = useState<Asked<Answer>>({})
  const startedAt = overview?.server.startedAt
  useEffect(() => {
    if (startedAt === undefined) return
    let isCurrent = true
    const show = (next: Asked<Answer>): void => {
      if (isCurrent) setAsked(next)
    }
    ask(api).then(
      (answer) => show({ answer }),
      (error: unknown) => show({ reason: reasonOf(error) }),
    )
    return () => {
      isCurrent = false
    }
  }, [api, startedAt])
  return asked
}
