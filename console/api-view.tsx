import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { OpenApi } from '../common/openapi.ts'
import type { ViewProps } from './app.tsx'
import type { Api } from './api.ts'
import { type ApiGroup, apiGroups, foundGroups } from './api-operations.ts'
import { OperationView } from './api-operation-view.tsx'
import { Search } from './fields.tsx'
import { Doc } from './links.tsx'
import { useAnswer } from './use-answer.ts'

/** Where this port tells its own API, and the inference port's. */
const DOCUMENTS = ['/api-description', '/console/play/api-description'] as const

/** The server's description of its REST APIs. */
export function ApiView({ state, api }: ViewProps): JSX.Element {
  const { answer: groups, reason } = useAnswer(state, api, readGroups)
  const [text, setText] = useState('')
  const found = useMemo(() => foundGroups(groups ?? [], text), [groups, text])
  // Events redraw the page each second; the description does not change by them.
  const shown = useMemo(() => found.map((group) => <Group key={group.name} {...group} />), [found])
  if (reason !== undefined) return <p role="alert">{reason}</p>
  if (groups === undefined) return <p class="note">Waiting for the server …</p>
  return (
    <>
      <p class="bar">
        <Search
          id="operation"
          label="Search"
          placeholder="method, path, words, parameter"
          value={text}
          onText={setText}
        />
        <span role="status">
          {count(found)} of {count(groups)} operations
        </span>
        <span>
          OpenAPI: <a href={DOCUMENTS[1]}>inference</a>, <a href={DOCUMENTS[0]}>this port</a>
        </span>
        <Doc page="protocols.md">Which API to use</Doc>
      </p>
      {shown}
    </>
  )
}

async function readGroups(api: Api): Promise<readonly ApiGroup[]> {
  const read = async (path: string): Promise<OpenApi> =>
    (await (await api.open('GET', path)).json()) as OpenApi
  return apiGroups(await Promise.all(DOCUMENTS.map(read)))
}

function Group({ name, operations }: ApiGroup): JSX.Element {
  return (
    <section class="operations" aria-label={name}>
      <h2>{name}</h2>
      {operations.map((each) => (
        <OperationView key={`${each.method} ${each.path}`} {...each} />
      ))}
    </section>
  )
}

function count(groups: readonly ApiGroup[]): number {
  return groups.reduce((sum, { operations }) => sum + operations.length, 0)
}
