import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LogEntry } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { Choice, Doc, logLink, Search } from './elements.tsx'
import { count, number, timeOfDay } from './format.ts'
import { keyOf } from './history.ts'

const LEVELS: readonly LogEntry['level'][] = ['debug', 'info', 'warn', 'error']
/** Lines in the document: more make it slow. */
const MAX_SHOWN = 500
/** Worker threads: `W-9000-words_1.0-stdout`. */
const THREAD = /^W-\d+-(.*?)(?:-stdout|-stderr)?$/
/** The line of a request that failed: its id, then the error code. */
const FAILED = /^(\S{1,200}) ([A-Z_]+: [^]*)$/

interface Filter {
  readonly level: LogEntry['level']
  /** A `keyOf`; empty: all models, and the server. */
  readonly model: string
  readonly search: string
}

/** The last lines of the server's log, which has those of handlers and their processes. */
export function LogView({ state, params }: ViewProps): JSX.Element {
  const [filter, setFilter] = useState<Filter>({ level: 'info', model: '', search: '' })
  const [paused, setPaused] = useState<readonly LogEntry[]>()
  const end = useRef<HTMLPreElement>(null)
  // Who scrolled up reads there; new lines do not take it away.
  const follows = useRef(true)
  const choose = (fields: Partial<Filter>): void => setFilter({ ...filter, ...fields })
  useEffect(() => {
    if (params.size === 0) return
    setPaused(undefined)
    setFilter({ level: 'info', model: params.get('model') ?? '', search: params.get('search') ?? '' })
  }, [params])
  useEffect(() => {
    if (paused === undefined && follows.current) end.current!.scrollTop = end.current!.scrollHeight
  })
  const lines = (paused ?? state.log).filter((line) => isShown(line, filter)).slice(-MAX_SHOWN)
  const models = (state.overview?.models ?? []).map(keyOf)
  if (filter.model !== '' && !models.includes(filter.model)) models.unshift(filter.model)
  return (
    <>
      <p class="bar">
        <Choice
          id="log-model"
          label="Model"
          value={filter.model}
          options={[
            ['', 'All models and the server'],
            ...models.map((each): [string, string] => [each, each]),
          ]}
          onChoose={(model) => choose({ model })}
        />
        <Choice
          id="level"
          label="Level"
          value={filter.level}
          options={LEVELS.map((each) => [each, each])}
          onChoose={(level) => choose({ level: level as LogEntry['level'] })}
        />
        <Search
          id="search"
          label="Search"
          placeholder="text, request id"
          value={filter.search}
          onText={(search) => choose({ search })}
        />
        <button
          type="button"
          aria-pressed={paused !== undefined}
          onClick={() => setPaused(paused === undefined ? [...state.log] : undefined)}
        >
          {paused === undefined ? 'Pause' : 'Continue'}
        </button>
        <span>
          {count(lines.length, 'line')}
          {state.dropped > 0 && `, ${number(state.dropped)} dropped by the server`}
        </span>
      </p>
      {state.overview !== undefined && lines.length === 0 && (
        <p class="note">
          {state.log.length === 0
            ? 'No log lines yet.'
            : 'No line matches. Choose all models, a lower level, or a shorter text.'}{' '}
          The page keeps the last lines only. <Doc page="metrics-and-logs.md">Where the log files are</Doc>
        </p>
      )}
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
          <Line {...line} />
        ))}
      </pre>
    </>
  )
}

/** A line; the id of a request that failed leads to all its lines. */
function Line({ at, level, thread, logger, message }: LogEntry): JSX.Element {
  const [, id, rest] = FAILED.exec(message) ?? []
  return (
    <div class={level}>
      {timeOfDay(at)} {level.toUpperCase()} {thread ?? logger}:{' '}
      {id === undefined ? message : <a href={logLink(undefined, id)}>{id}</a>}
      {rest !== undefined && ` ${rest}`}
    </div>
  )
}

function isShown(line: LogEntry, { level, model, search }: Filter): boolean {
  if (LEVELS.indexOf(line.level) < LEVELS.indexOf(level)) return false
  if (model !== '' && THREAD.exec(line.thread ?? '')?.[1] !== model.replace(' ', '_')) return false
  const text = `${line.thread ?? ''} ${line.logger} ${line.message}`.toLowerCase()
  return text.includes(search.trim().toLowerCase())
}
