import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ShownSetting } from '../common/shown-setting.ts'
import type { ViewProps } from './app.tsx'
import { reasonOf } from './api.ts'
import { ScrollTable } from './scroll-table.tsx'

const DEFAULT = 'default'

/** Each key with its value, and where the value came from. */
export function ConfigurationView({ api }: ViewProps): JSX.Element {
  const [settings, setSettings] = useState<readonly ShownSetting[]>()
  const [reason, setReason] = useState('')
  const [text, setText] = useState('')
  const [onlySet, setOnlySet] = useState(false)
  useEffect(() => {
    const read = async (): Promise<void> => {
      const response = await api.open('GET', '/configuration')
      setSettings(((await response.json()) as { settings: ShownSetting[] }).settings)
    }
    read().catch((error: unknown) => setReason(reasonOf(error)))
  }, [api])
  if (reason !== '') return <p role="alert">{reason}</p>
  if (settings === undefined) return <p class="note">Waiting for the server …</p>
  const shown = settings.filter((each) => matches(each, text) && (!onlySet || each.source !== DEFAULT))
  return (
    <>
      <p class="bar">
        <label for="key">Filter</label>
        <input
          id="key"
          type="search"
          placeholder="key, value, source, meaning"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label>
          <input
            type="checkbox"
            checked={onlySet}
            onChange={(event) => setOnlySet(event.currentTarget.checked)}
          />{' '}
          Only what was set
        </label>
        <span role="status">
          {shown.length} of {settings.length} keys
        </span>
      </p>
      <ScrollTable label="Keys" columns={['Key', 'Value', 'From', 'Default', 'Meaning']}>
        {shown.map(({ name, value, source, fallback, meaning }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            <td class="raw">{value ?? '–'}</td>
            <td>{source}</td>
            <td class="raw">{fallback ?? '–'}</td>
            <td>{plain(meaning)}</td>
          </tr>
        ))}
      </ScrollTable>
    </>
  )
}

function matches({ name, value = '', source, meaning }: ShownSetting, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return [name, value, source, meaning].some((each) => each.toLowerCase().includes(wanted))
}

/** The documentation's links become their words. */
function plain(meaning: string): string {
  return meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}
