import type { ComponentChildren, JSX } from 'preact'
import { bytes, duration, number } from './format.ts'
import { logLink, ScrollTable } from './elements.tsx'
import type { Figures, Piece, PlayRun } from './play-run.ts'

/** Pieces in the table. */
const SHOWN = 200

const STATES: Readonly<Record<PlayRun['state'], string>> = {
  waiting: 'waiting for the answer …',
  streaming: 'the answer arrives …',
  ended: 'ended',
  stopped: 'stopped',
  failed: 'failed',
}

const FIGURES: readonly { readonly title: string; readonly text: (figures: Figures) => string }[] = [
  { title: 'First piece', text: ({ first }) => duration(first) },
  { title: 'Gap p50', text: ({ p50 }) => duration(p50) },
  { title: 'Gap p99', text: ({ p99 }) => duration(p99) },
  { title: 'Pieces/s', text: ({ rate }) => (rate === undefined ? '–' : number(rate)) },
  { title: 'Pieces', text: ({ pieces }) => number(pieces) },
  { title: 'Received', text: (figures) => bytes(figures.bytes) },
  { title: 'Total', text: ({ total }) => duration(total) },
]

/** A run: its answer, its figures beside those of the run before, and each piece with its time. */
export function RunView(props: {
  run: PlayRun
  before: PlayRun | undefined
  isChat: boolean
  /** Shown in place of the text of the answer. */
  children: ComponentChildren
}): JSX.Element {
  const { run, before, isChat, children } = props
  const runs = before === undefined ? [run] : [run, before]
  return (
    <section aria-label="Answer">
      <p role="status" class={`outcome ${run.state}`}>
        {run.status !== undefined && `Status ${run.status}, `}
        {STATES[run.state]}
        {run.requestId !== undefined && (
          <small>
            {' '}
            request <a href={logLink(undefined, run.requestId)}>{run.requestId}</a>
          </small>
        )}
      </p>
      {run.state === 'failed' && <p role="alert">{run.error}</p>}
      {children}
      {!isChat && !run.isRefused && (
        <pre class="answer" tabIndex={0} aria-label="Text of the answer">
          {run.answer}
        </pre>
      )}
      <Timeline pieces={run.pieces} total={run.figures.total} />
      <ScrollTable label="Figures" class="figures" columns={['Run', ...FIGURES.map(({ title }) => title)]}>
        {runs.map(({ title, figures }, index) => (
          <tr>
            <th scope="row">{index === 0 ? title : `${title} (before)`}</th>
            {FIGURES.map(({ text }) => (
              <td>{text(figures)}</td>
            ))}
          </tr>
        ))}
      </ScrollTable>
      <Pieces run={run} />
    </section>
  )
}

/** A stroke for each piece, from the sending of the request to the end of its answer. */
function Timeline({ pieces, total }: { pieces: readonly Piece[]; total: number }): JSX.Element {
  const place = (at: number): number => Math.round((at / Math.max(total, 1)) * 9_990) / 10
  return (
    <svg
      class="timeline"
      viewBox="0 0 1000 30"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${pieces.length} pieces within ${duration(total)}`}
    >
      {pieces.map(({ number: key, at }) => (
        <rect key={key} x={place(at)} y="4" width="1" height="22" />
      ))}
    </svg>
  )
}

function Pieces({ run }: { run: PlayRun }): JSX.Element {
  const last = run.pieces.slice(-SHOWN)
  const hidden = run.leftOut + run.pieces.length - last.length
  return (
    <>
      {hidden > 0 && (
        <p class="note">
          The last {number(SHOWN)}; {number(hidden)} before them are not shown.
        </p>
      )}
      <ScrollTable label="Pieces" class="pieces" columns={['Number', 'After', 'Gap', 'Raw']}>
        {last.map((piece) => (
          <tr key={piece.number}>
            <td>{number(piece.number)}</td>
            <td>{duration(piece.at)}</td>
            <td>{duration(piece.gap)}</td>
            <td class="raw">{piece.text}</td>
          </tr>
        ))}
      </ScrollTable>
    </>
  )
}
