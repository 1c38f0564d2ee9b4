import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { OpenRequest } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { reasonOf } from './api.ts'
import { Ask, type Question, Search } from './elements.tsx'
import { bytes, count, duration, number } from './format.ts'

/** Height of a row, as app.css has it; only the rows in sight are in the document. */
const ROW = 34
const ROWS_IN_SIGHT = 18
/** Rows above and below those in sight. */
const SPARE = 4

interface Column {
  readonly title: string
  readonly text: (request: OpenRequest) => string
  /** What the column is sorted by. */
  readonly key: (request: OpenRequest) => string | number
  /** Sorted with the highest first, until it is asked for the other way. */
  readonly descends: boolean
}

const WAITS: Readonly<Record<OpenRequest['waitsFor'], string>> = {
  worker: 'a worker',
  handler: 'the handler',
  client: 'its client',
}

const COLUMNS: readonly Column[] = [
  column('Model', ({ modelName, modelVersion = '' }) => `${modelName} ${modelVersion}`.trim()),
  column('API', (request) => request.api),
  column('Client', (request) => request.client),
  column('Key', (request) => request.key ?? '–'),
  measure('Age', (request) => request.ageMs, duration),
  measure('Items', (request) => request.items, number),
  measure('Sent', (request) => request.bytes, bytes),
  measure('First item', (request) => request.firstResponseMs ?? -1, shown),
  measure('Last gap', (request) => request.lastGapMs ?? -1, shown),
  column('Waits for', (request) => WAITS[request.waitsFor]),
  column('Id', (request) => request.id),
]

const AGE = COLUMNS.findIndex(({ title }) => title === 'Age')

function column(title: string, text: (request: OpenRequest) => string): Column {
  return { title, text, key: text, descends: false }
}

function measure(
  title: string,
  key: (request: OpenRequest) => number,
  format: (value: number) => string,
): Column {
  return { title, text: (request) => format(key(request)), key, descends: true }
}

function shown(milliseconds: number): string {
  return milliseconds < 0 ? '–' : duration(milliseconds)
}

/** Every open request, and a button that cancels it. */
export function RequestsView({ state, api, params }: ViewProps): JSX.Element {
  const [filter, setFilter] = useState('')
  const [sort, setSort] = useState({ column: AGE, descending: true })
  const [question, setQuestion] = useState<Question>()
  const [message, setMessage] = useState('')
  useEffect(() => setFilter(params.get('filter') ?? filter), [params])
  if (state.requests === undefined) return <p class="note">Waiting for the server …</p>
  const { total, requests } = state.requests
  const rows = sorted(
    requests.filter((request) => matches(request, filter)),
    COLUMNS[sort.column]!,
    sort.descending,
  )
  const cancel = (request: OpenRequest): void =>
    setQuestion({
      text: `Cancel request ${request.id} of ${request.modelName}? Its client gets an error.`,
      action: 'Cancel the request',
      run: () =>
        void api
          .call('DELETE', `/requests/${encodeURIComponent(request.id)}`)
          .then(setMessage, (error: unknown) => setMessage(reasonOf(error))),
    })
  return (
    <>
      <p class="bar">
        <Search
          id="filter"
          label="Filter"
          placeholder="model, API, client, key, id"
          value={filter}
          onText={setFilter}
        />
        <span>
          {number(rows.length)} of {count(total, 'open request')}
        </span>
      </p>
      <p role="status" class="message">
        {message}
      </p>
      {total === 0 ? (
        <p class="note empty">
          No open requests. Send one in the <a href="#playground">playground</a>. Ended requests are in the{' '}
          <a href="#log">log</a>.
        </p>
      ) : (
        <RequestTable rows={rows} sort={sort} onSort={setSort} onCancel={cancel} />
      )}
      {question !== undefined && <Ask question={question} onClose={() => setQuestion(undefined)} />}
    </>
  )
}

interface Sort {
  column: number
  descending: boolean
}

function RequestTable(props: {
  rows: readonly OpenRequest[]
  sort: Sort
  onSort: (sort: Sort) => void
  onCancel: (request: OpenRequest) => void
}): JSX.Element {
  const { rows, sort, onSort, onCancel } = props
  const [top, setTop] = useState(0)
  const first = Math.max(0, Math.min(Math.floor(top / ROW), rows.length - ROWS_IN_SIGHT) - SPARE)
  const inSight = rows.slice(first, first + ROWS_IN_SIGHT + 2 * SPARE)
  const below = rows.length - first - inSight.length
  return (
    <div
      class="scroll rows"
      tabIndex={0}
      role="region"
      aria-label="Open requests"
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {COLUMNS.map(({ title, descends }, index) => (
              <th scope="col" aria-sort={sorting(sort, index)}>
                <button
                  type="button"
                  onClick={() =>
                    onSort({ column: index, descending: sort.column === index ? !sort.descending : descends })
                  }
                >
                  {title}
                </button>
              </th>
            ))}
            <th scope="col" class="sticky">
              Action
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer rows={first} />
          {inSight.map((request, index) => (
            <tr key={request.id} aria-rowindex={first + index + 2}>
              {COLUMNS.map(({ text }) => (
                <td title={text(request)}>{text(request)}</td>
              ))}
              <td class="sticky">
                {request.api !== 'workflow' && (
                  <button
                    type="button"
                    class="danger"
                    aria-label={`Cancel ${request.id}`}
                    onClick={() => onCancel(request)}
                  >
                    Cancel
                  </button>
                )}
              </td>
            </tr>
          ))}
          <Spacer rows={below} />
        </tbody>
      </table>
    </div>
  )
}

/** Stands for rows that are not in sight. */
function Spacer({ rows }: { rows: number }): JSX.Element | null {
  if (rows <= 0) return null
  return (
    <tr aria-hidden="true">
      <td
        class="spacer"
        colSpan={COLUMNS.length + 1}
        ref={(cell) => {
          // A style attribute would break the content security policy.
          if (cell !== null) cell.style.height = `${rows * ROW}px`
        }}
      />
    </tr>
  )
}

function sorting(sort: Sort, index: number): 'ascending' | 'descending' | undefined {
  if (sort.column !== index) return undefined
  return sort.descending ? 'descending' : 'ascending'
}

function sorted(rows: OpenRequest[], { key }: Column, descending: boolean): OpenRequest[] {
  const sign = descending ? -1 : 1
  return rows.sort((one, other) => {
    const [a, b] = [key(one), key(other)]
    return (
      sign * (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b)))
    )
  })
}

function matches(request: OpenRequest, filter: string): boolean {
  const wanted = filter.trim().toLowerCase()
  const { modelName, api, client, key = '', id } = request
  return [modelName, api, client, key, id].some((text) => text.toLowerCase().includes(wanted))
}
