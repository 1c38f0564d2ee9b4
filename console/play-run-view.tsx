import type { JSX } from 'preact'
import { bytes, duration, number } from './format.ts'
import type { Figures, Piece, PlayRun } from './play-run.ts'
import { ScrollTable } from './scroll-table.tsx'

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
  { title: 'Gap, p50', text: ({ p50 }) => duration(p50) },
  { title: 'Gap, p99', text: ({ p99 }) => duration(p99) },
  { title: 'Pieces per second', text: ({ rate }) => (rate === undefined ? '–' : number(rate)) },
  { title: 'Pieces', text: ({ pieces }) => number(pieces) },
  { title: 'Received', text: (figures) => bytes(figures.bytes) },
  { title: 'Total', text: ({ total }) => duration(total) },
]

/** A run: its figures beside those of the run before, its answer, and each piece with its time. */
export function RunView({ run, before }: { run: PlayRun; before: PlayRun | undefined }): JSX.Element {
  const runs = before === undefined ? [run] : [run, before]
  const all = runs.map(({ figures }) => figures)
  const titles = runs.map(({ title }, index) => (index === 1 ? `${title} (before)` : title))
  return (
    <section aria-label="Answer">
      <p role="status">
        {run.status !== undefined && `Status ${run.status}, `}
        {STATES[run.state]}
        {run.requestId !== undefined && (
          <>
            , request <code>{run.requestId}</code>
          </>
        )}
      </p>
      {run.reason !== '' && <p role="alert">{run.reason}</p>}
      <ScrollTable label="Figures" class="figures" columns={['Run', ...titles]}>
        {FIGURES.map(({ title, text }) => (
          <tr>
            <th scope="row">{title}</th>
            {all.map((figures) => (
              <td>{text(figures)}</td>
            ))}
          </tr>
        ))}
      </ScrollTable>
      <Timeline pieces={run.pieces} total={all[0]!.total} />
      <h2>Text</h2>
      <pre class="answer" tabIndex={0} aria-label="Text of the answer">
        {run.answer}
      </pre>
      <h2>Pieces</h2>
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
      <ScrollTable label="Pieces" class="pieces" columns={['Number', 'After', 'Gap', 'As it arrived']}>
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
