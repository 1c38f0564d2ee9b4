import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ShownSetting } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import type { Api } from './api.ts'
import { Search } from './fields.tsx'
import { Doc } from './links.tsx'
import { ScrollTable } from './scroll-table.tsx'
import { useAnswer } from './use-answer.ts'

const DEFAULT = 'default'

/** Each key with its value, and where the value came from. */
export function ConfigurationView({ state, api }: ViewProps): JSX.Element {
  const { answer: settings, reason } = useAnswer(state, api, readSettings)
  const [text, setText] = useState('')
  const [onlySet, setOnlySet] = useState(false)
  if (reason !== undefined) return <p role="alert">{reason}</p>
  if (settings === undefined) return <p class="note">Waiting for the server …</p>
  const shown = settings.filter((each) => matches(each, text) && (!onlySet || each.source !== DEFAULT))
  return (
    <>
      <p class="bar">
        <Search
          id="key"
          label="Filter"
          placeholder="key, value, source, meaning"
          value={text}
          onText={setText}
        />
        <label>
          <input
            type="checkbox"
            checked={onlySet}
            onChange={(event) => setOnlySet(event.currentTarget.checked)}
          />{' '}
          Only keys that are set
        </label>
        <span role="status">
          {shown.length} of {settings.length} keys
        </span>
        <Doc page="configuration.md">How to set a key</Doc>
      </p>
      <ScrollTable label="Keys" class="keys" columns={['Key', 'Value', 'From', 'Default', 'Meaning']}>
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

async function readSettings(api: Api): Promise<readonly ShownSetting[]> {
  const response = await api.open('GET', '/configuration')
  return ((await response.json()) as { settings: ShownSetting[] }).settings
}

function matches({ name, value = '', source, meaning }: ShownSetting, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return [name, value, source, meaning].some((each) => each.toLowerCase().includes(wanted))
}

/** The documentation's links become their words. */
function plain(meaning: string): string {
  return meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}
