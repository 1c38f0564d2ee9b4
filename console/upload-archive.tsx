import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Api } from './api.ts'
import { reasonOf } from './api.ts'
import { bytes } from './format.ts'

/** How far an upload is. */
interface Progress {
  readonly name: string
  readonly sent: number
  readonly total: number
}

/** Takes an archive to the model store, where the form below finds it. */
export function UploadArchive(props: {
  api: Api
  /** Undefined: not yet known. */
  isOn: boolean | undefined
  onUploaded: (name: string) => void
}): JSX.Element {
  const { api, isOn, onUploaded } = props
  const input = useRef<HTMLInputElement>(null)
  const [progress, setProgress] = useState<Progress>()
  const [failure, setFailure] = useState<string>()
  const [done, setDone] = useState<string>()
  const stop = useRef<AbortController>(null)
  const send = async (file: File): Promise<void> => {
    setFailure(undefined)
    setDone(undefined)
    setProgress({ name: file.name, sent: 0, total: file.size })
    stop.current = new AbortController()
    try {
      await api.upload(`/archives/${encodeURIComponent(file.name)}`, file, stop.current.signal, (sent) =>
        setProgress({ name: file.name, sent, total: file.size }),
      )
      setDone(`${file.name} is in the model store.`)
      if (!file.name.endsWith('.sig')) onUploaded(file.name)
    } catch (error) {
      setFailure(`Upload ${file.name}: ${reasonOf(error)}`)
    } finally {
      setProgress(undefined)
      if (input.current !== null) input.current.value = ''
    }
  }
  const take = (files: FileList | null | undefined): void => {
    const file = files?.[0]
    if (file !== undefined && progress === undefined) void send(file)
  }
  if (isOn === false)
    return (
      <p class="note">
        Uploads of archives are off. To allow them, start the server with{' '}
        <code>enable_archive_upload=true</code> and <code>enable_model_api=true</code>.
      </p>
    )
  return (
    <section
      class="upload"
      aria-label="Upload an archive"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        take(event.dataTransfer?.files)
      }}
    >
      <label for="archive">Upload an archive: choose it, or drop it here</label>
      <input
        id="archive"
        ref={input}
        type="file"
        accept=".mar,.model,.tgz,.gz,.sig"
        disabled={progress !== undefined || isOn === undefined}
        onChange={() => take(input.current?.files)}
      />
      {progress !== undefined && (
        <>
          <progress aria-label={`Upload of ${progress.name}`} value={progress.sent} max={progress.total} />
          <span>
            {bytes(progress.sent)} of {bytes(progress.total)}
          </span>
          <button type="button" onClick={() => stop.current?.abort()}>
            Stop the upload
          </button>
        </>
      )}
      {done !== undefined && <span role="status">{done}</span>}
      {failure !== undefined && <p role="alert">{failure}</p>}
    </section>
  )
}
