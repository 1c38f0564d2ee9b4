import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** What a click is about to do. */
export interface Question {
  readonly text: string
  /** The word on the button: `Cancel the request`. */
  readonly action: string
  readonly run: () => void
}

/** Asks before something that harms. */
export function Ask({ question, onClose }: { question: Question; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  // Closed by the dialog itself, which gives the focus back to where it was.
  const close = (): void => dialog.current!.close()
  useEffect(() => {
    dialog.current!.showModal()
    // Hidden with its view, it would still keep the user from the rest of the page.
    addEventListener('hashchange', close)
    return () => removeEventListener('hashchange', close)
  }, [])
  const run = (): void => {
    close()
    question.run()
  }
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="question">
      <p id="question">{question.text}</p>
      <div class="actions">
        <button type="button" onClick={close}>
          Go back
        </button>
        <button type="button" class="harms" onClick={run}>
          {question.action}
        </button>
      </div>
    </dialog>
  )
}
