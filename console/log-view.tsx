import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LogEntry } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { number, timeOfDay } from './format.ts'

const LEVELS: readonly LogEntry['level'][] = ['debug', 'info', 'warn', 'error']
/** Lines in the document: more make it slow. */
const MAX_SHOWN = 500

/** The last lines of the server's log, which has those of handlers and their processes. */
export function LogView({ state }: ViewProps): JSX.Element {
  const [level, setLevel] = useState<LogEntry['level']>('info')
  const [search, setSearch] = useState('')
  const [paused, setPaused] = useState<readonly LogEntry[]>()
  const end = useRef<HTMLPreElement>(null)
  // Who scrolled up reads there; new lines do not take it away.
  const follows = useRef(true)
  const lines = (paused ?? state.log)
    .filter((line) => isShown(line, level, search.toLowerCase()))
    .slice(-MAX_SHOWN)
  useEffect(() => {
    if (paused === undefined && follows.current) end.current!.scrollTop = end.current!.scrollHeight
  })
  return (
    <>
      {state.overview !== undefined && state.log.length === 0 && <p class="note">No line has come.</p>}
      <p class="bar">
        <span class="field">
          <label for="level">Level</label>
          <select
            id="level"
            value={level}
            onChange={(event) => setLevel(event.currentTarget.value as LogEntry['level'])}
          >
            {LEVELS.map((each) => (
              <option value={each}>{each}</option>
            ))}
          </select>
        </span>
        <span class="field">
          <label for="search">Search</label>
          <input
            id="search"
            type="search"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </span>
        <button
          type="button"
          aria-pressed={paused !== undefined}
          onClick={() => setPaused(paused === undefined ? [...state.log] : undefined)}
        >
          {paused === undefined ? 'Pause' : 'Go on'}
        </button>
        <span>
          {number(lines.length)} lines
          {state.dropped > 0 && `, ${number(state.dropped)} left out by the server`}
        </span>
      </p>
      <pre
        class="log"
        ref={end}
        tabIndex={0}
        role="region"
        aria-label="Log lines"
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          follows.current = scrollTop + clientHeight > scrollHeight - 30
        }}
      >
        {lines.map((line) => (
          <div class={line.level}>
            {timeOfDay(line.at)} {line.level.toUpperCase()} {line.thread ?? line.logger}: {line.message}
          </div>
        ))}
      </pre>
    </>
  )
}

function isShown(line: LogEntry, level: LogEntry['level'], search: string): boolean {
  if (LEVELS.indexOf(line.level) < LEVELS.indexOf(level)) return false
  return `${line.thread ?? ''} ${line.logger} ${line.message}`.toLowerCase().includes(search)
}
