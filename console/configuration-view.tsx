import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ShownSetting } from '../common/server-events.ts'
import { type Api, reasonOf } from './api.ts'
import type { ViewProps } from './app.tsx'
import { Doc, ScrollTable, Search } from './elements.tsx'
import type { ServerState } from './server-state.ts'

const DEFAULT = 'default'

/** Each key with its value, and where the value came from. */
export function ConfigurationView({ state, api }: ViewProps): JSX.Element {
  const { settings, reason } = useSettings(state, api)
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

/** The settings, or why they could not be read. They are read again when the server has restarted. */
function useSettings(
  { overview }: ServerState,
  api: Api,
): { readonly settings?: readonly ShownSetting[]; readonly reason?: string } {
  const [known, setKnown] = useState({})
  const startedAt = overview?.server.startedAt
  useEffect(() => {
    if (startedAt === undefined) return
    let isCurrent = true
    void readSettings(api)
      .then(
        (settings) => ({ settings }),
        (error: unknown) => ({ reason: reasonOf(error) }),
      )
      .then((next) => isCurrent && setKnown(next))
    return () => {
      isCurrent = false
    }
  }, [api, startedAt])
  return known
}
