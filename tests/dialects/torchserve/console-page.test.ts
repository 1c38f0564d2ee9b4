import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { createManagementApp } from '../../../frontend/dialects/rest-apps.ts'
import { consolePages } from '../../../frontend/dialects/torchserve/rest-console.ts'
import { createKoa, koaHandler } from '../../../frontend/dialects/torchserve/rest-koa.ts'
import { createApp, createState } from '../../../frontend/edge/http/app.ts'
import { listenerErrors } from '../../../frontend/dialects/torchserve/rest-errors.ts'
import { consoleDir } from '../../../frontend/package-info.ts'
import { ask, type Rig, startRig } from '../../support/http/rig.ts'
import { tempDir } from '../../support/temp.ts'

/** A listener whose console is in this folder. */
function serving(folder: string): Promise<Rig> {
  return startRig(
    (deps) => {
      const state = createState(deps, 'management', listenerErrors([]))
      return createApp(state, [], koaHandler(createKoa(state).use(consolePages(folder))))
    },
    { tokens: true },
  )
}

test('the files of the page are served without a token, with a policy that runs nothing else', async () => {
  const folder = join(tempDir(), 'console')
  await mkdir(join(folder, 'icons'), { recursive: true })
  await writeFile(join(folder, 'index.html'), '<p>page')
  await writeFile(join(folder, 'icons', 'a.svg'), '<svg/>')
  await writeFile(join(folder, '..', 'secret.html'), 'no')
  const rig = await serving(folder)
  for (const path of ['/console', '/console/', '/console/index.html']) {
    const { status, text, headers } = await ask(rig, path)
    expect([status, text, headers.get('content-type')]).toEqual([200, '<p>page', 'text/html; charset=utf-8'])
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
  const image = await ask(rig, '/console/icons/a.svg')
  expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  const again = await ask(rig, '/console', { headers: { 'if-none-match': image.headers.get('etag')! } })
  expect(again.status).toBe(200)
  const known = await ask(rig, '/console/icons/a.svg', {
    headers: { 'if-none-match': image.headers.get('etag')! },
  })
  expect([known.status, known.text]).toEqual([304, ''])
  const etag = image.headers.get('etag')!
  for (const tags of [`W/${etag}`, `"other", W/${etag}`, '*'])
    expect([
      tags,
      (await ask(rig, '/console/icons/a.svg', { headers: { 'if-none-match': tags } })).status,
    ]).toEqual([tags, 304])
  const others = await ask(rig, '/console/icons/a.svg', { headers: { 'if-none-match': '"other", W/"b"' } })
  expect(others.status).toBe(200)
  for (const path of ['/console/none.js', '/console/..%2Fsecret.html', '/console/icons'])
    expect((await ask(rig, path)).status).toBe(404)
  expect((await ask(rig, '/console', { method: 'POST' })).status).toBe(405)
  const head = await ask(rig, '/console', { method: 'HEAD' })
  expect([head.text, head.headers.get('content-length')]).toEqual(['', String('<p>page'.length)])
  await rm(folder, { recursive: true })
  expect((await ask(rig, '/console')).text).toBe('<p>page')
})

test('a build without the page says so', async () => {
  const { status, text } = await ask(await serving(join(tempDir(), 'none')), '/console')
  expect([status, text]).toEqual([404, expect.stringContaining('enable_console=false')])
})

test('a browser finds the console at / of management, unless it is off', async () => {
  const accept = { headers: { accept: 'text/html' } }
  const on = await startRig((deps) => createManagementApp(deps), { tokens: true })
  expect((await ask(on, '/', accept)).text).toContain('href="/console"')
  expect((await ask(on, '/console')).status).toBe(existsSync(consoleDir) ? 200 : 404)
  const off = await startRig(
    (deps) => createManagementApp({ ...deps, settings: { ...deps.settings, enableConsole: false } }),
    { tokens: true },
  )
  expect((await ask(off, '/', accept)).text).not.toContain('console')
  expect((await ask(off, '/console')).text).toContain('InvalidKeyException')
})
