/** Messages from a background server to the command that started it. */
export type StartReport =
  /** The settings are read; `limitMs` bounds the rest of the start. */
  | { type: 'starting'; limitMs: number }
  | { type: 'started'; lines: string[] }
  | { type: 'failed'; message: string; detail?: string }

/** Receives the progress of a start: the terminal, or the command that waits for a background server. */
export interface StartReporter {
  /** Resolves when the report was sent, so that the process may exit. */
  tell(report: StartReport): Promise<void>
}

export function isStartReport(message: unknown): message is StartReport {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false
  return message.type === 'starting' || message.type === 'started' || message.type === 'failed'
}
