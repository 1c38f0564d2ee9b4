import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { ArchiveUpload } from './archive-upload.ts'
import { bytes } from './format.ts'

/** Takes an archive to the model store, where the form below finds it. */
export function UploadArchive(props: {
  upload: ArchiveUpload
  /** Undefined: not yet known. */
  isOn: boolean | undefined
}): JSX.Element {
  const { upload, isOn } = props
  const { progress, outcome } = upload
  const input = useRef<HTMLInputElement>(null)
  const take = async (files: FileList | null | undefined): Promise<void> => {
    const file = files?.[0]
    if (file === undefined) return
    await upload.send(file)
    if (input.current !== null) input.current.value = ''
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
        void take(event.dataTransfer?.files)
      }}
    >
      <label for="archive">Upload an archive: choose it, or drop it here</label>
      <input
        id="archive"
        ref={input}
        type="file"
        accept=".mar,.model,.tgz,.gz,.sig"
        disabled={progress !== undefined || isOn === undefined}
        onChange={() => void take(input.current?.files)}
      />
      {progress !== undefined && (
        <>
          <progress aria-label={`Upload of ${progress.name}`} value={progress.sent} max={progress.total} />
          <span>
            {progress.name}: {bytes(progress.sent)} of {bytes(progress.total)}
          </span>
          <button type="button" onClick={() => upload.stop()}>
            Stop the upload
          </button>
        </>
      )}
      {outcome?.ok === true && <span role="status">{outcome.text}</span>}
      {outcome?.ok === false && <p role="alert">{outcome.text}</p>}
    </section>
  )
}
