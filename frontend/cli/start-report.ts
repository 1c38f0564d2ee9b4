/** What a background server tells the command that started it. */
export type StartReport =
  /** The settings are read; the rest of the start takes at most this long. */
  | { type: 'starting'; limitMs: number }
  | { type: 'started'; lines: string[]; warnings: string[] }
  | { type: 'failed'; message: string; detail?: string }

/** Who hears how a start goes: the terminal, or the command that waits for a background server. */
export interface StartReporter {
  /** Resolves when the report is on its way, so that the process may end. */
  tell(report: StartReport): Promise<void>
}

export function isStartReport(message: unknown): message is StartReport {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false
  return message.type === 'starting' || message.type === 'started' || message.type === 'failed'
}
