import type { RequestListener } from 'node:http'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { type LocateOptions, locateModel } from '../../model-archiver/locate.ts'
import { listStore } from '../../model-archiver/store.ts'
import { failure, readTree, tempFolder } from './temp.ts'
import { serve } from './web-server.ts'

const ANY = [/file:\/\/.*|http(s)?:\/\/.*/i]

function at(modelStore: string | undefined, more: Partial<LocateOptions> = {}): LocateOptions {
  return { modelStore, allowedUrls: [], download: { allowPrivate: true }, ...more }
}

describe('a model in the store', () => {
  test('is found by its name, file or folder', async () => {
    const store = tempFolder({ 'x.mar': '', 'y/handler.ts': '' })
    expect(await locateModel('x.mar', at(store))).toEqual({ path: join(store, 'x.mar'), downloaded: false })
    expect((await locateModel('y', at(store))).path).toBe(join(store, 'y'))
  })

  test('is found by any path that ends in its name, as in TorchServe', async () => {
    const store = tempFolder({ 'x.mar': '' })
    for (const url of ['sub/x.mar', './x.mar', '/no/such/x.mar', join(store, 'x.mar')])
      expect((await locateModel(url, at(store))).path).toBe(join(store, 'x.mar'))
  })

  test.each([
    ['', 'empty url'],
    ['..', 'Relative path is not allowed in url: ..'],
    ['../x.mar', 'Relative path is not allowed in url: ../x.mar'],
    ['a..b', 'Relative path is not allowed in url: a..b'],
    ['no.mar', 'Model not found at: no.mar'],
    ['.', 'Model not found at: .'],
    ['/', 'Given URL / does not match any allowed URL(s)'],
    ['x\0y', 'Model not found at: x\0y'],
    ['file://other-host/x', 'Model not found at: file://other-host/x'],
  ])('is not %j', async (url, message) => {
    expect(await failure(locateModel(url, at(tempFolder({ 'x.mar': '' }))))).toEqual({
      code: 'MODEL_NOT_FOUND',
      message,
    })
  })

  test.each(['file:///x.mar#/y', 'file:///x.mar?y', 'FILE:/x.mar#'])(
    'is not named by %s, whose end no path has',
    async (url) => {
      const store = tempFolder({ 'x.mar': '' })
      expect(await failure(locateModel(url.replace('/x.mar', `${store}/x.mar`), at(store)))).toEqual({
        code: 'INVALID_ARGUMENT',
        message: 'Parameter url: a file URL must have no query and no fragment; write ? as %3F and # as %23.',
      })
    },
  )

  test('needs a store', async () => {
    const message = 'Model store has not been configured.'
    expect(await failure(locateModel('x.mar', at(undefined)))).toEqual({ code: 'MODEL_NOT_FOUND', message })
    const options = at(undefined, { allowedUrls: ANY })
    expect((await failure(locateModel('http://127.0.0.1:1/x.mar', options))).message).toBe(message)
  })
})

describe('a local path outside the store', () => {
  test('is refused unless it is allowed as a file URL, or the operator wrote it', async () => {
    const store = tempFolder()
    const outside = join(tempFolder({ 'model/handler.ts': '' }), 'model')
    const refused = {
      code: 'MODEL_NOT_FOUND',
      message: `Given URL ${outside} does not match any allowed URL(s)`,
    }
    expect(await failure(locateModel(outside, at(store)))).toEqual(refused)
    expect(await failure(locateModel(outside, at(store, { allowedUrls: [/http.*/] })))).toEqual(refused)
    expect((await locateModel(outside, at(store, { trusted: true }))).path).toBe(outside)
    const allowedUrls = [new RegExp(`${pathToFileURL(join(outside, '..')).href}/.*`)]
    expect((await locateModel(outside, at(store, { allowedUrls }))).path).toBe(outside)
  })

  test('must match an allowed URL as a whole', async () => {
    const outside = tempFolder({ 'model/handler.ts': '' })
    const allowedUrls = [/file:\/\/|model/]
    expect(
      (await failure(locateModel(join(outside, 'model'), at(undefined, { allowedUrls })))).message,
    ).toContain('does not match')
  })

  test('may be given as a file URL, which cannot be dressed up', async () => {
    const folder = tempFolder({ 'good/x.mar': '', 'bad/x.mar': '' })
    const allowedUrls = [new RegExp(`${pathToFileURL(join(folder, 'good')).href}/.*`)]
    const url = pathToFileURL(join(folder, 'good/x.mar')).href
    expect(await locateModel(url, at(undefined, { allowedUrls }))).toEqual({
      path: join(folder, 'good/x.mar'),
      downloaded: false,
    })
    const around = `${pathToFileURL(join(folder, 'good')).href}/%2e%2e/bad/x.mar`
    expect((await failure(locateModel(around, at(undefined, { allowedUrls })))).message).toContain(
      'does not match',
    )
    const missing = `${pathToFileURL(join(folder, 'good')).href}/no.mar`
    expect((await failure(locateModel(missing, at(undefined, { allowedUrls })))).message).toBe(
      `Model not found at: ${missing}`,
    )
  })
})

describe('a download', () => {
  test('goes into the store under the last part of its URL', async () => {
    const origin = await serve((_request, response) => response.end('archive'))
    const store = tempFolder()
    const located = await locateModel(`${origin}/a/my%2Dmodel.mar?key=1`, at(store, { allowedUrls: ANY }))
    expect(located).toEqual({ path: join(store, 'my-model.mar'), downloaded: true })
    expect(readTree(store)).toEqual({ 'my-model.mar': 'archive' })
  })

  test('never replaces a file, also not one that came in the meantime', async () => {
    const store = tempFolder({ 'x.mar': 'mine' })
    const origin = await serve((_request, response) => response.end('theirs'))
    const options = at(store, { allowedUrls: ANY })
    const exists = { code: 'INTERNAL', message: 'Model file already exists x.mar' }
    expect(await failure(locateModel(`${origin}/x.mar`, options))).toEqual(exists)
    const both = await Promise.allSettled([1, 2].map(() => locateModel(`${origin}/y.mar`, options)))
    expect(both.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(readTree(store)).toEqual({ 'x.mar': 'mine', 'y.mar': 'theirs' })
  })

  test('follows redirects, but only to what is allowed, and not for ever', async () => {
    const target = await serve((_request, response) => response.end('archive'))
    const other = await serve((_request, response) => response.end('secret'))
    const origin = await serve((request, response) => {
      const to = request.url!.startsWith('/good') ? target : request.url!.startsWith('/bad') ? other : ''
      response.writeHead(302, { location: `${to}/${to === '' ? 'loop.mar' : 'final'}` }).end()
    })
    const store = tempFolder()
    const allowedUrls = [new RegExp(`(${origin}|${target})/.*`)]
    expect((await locateModel(`${origin}/good.mar`, at(store, { allowedUrls }))).path).toBe(
      join(store, 'good.mar'),
    )
    expect((await failure(locateModel(`${origin}/bad.mar`, at(store, { allowedUrls })))).message).toBe(
      `Given URL ${other}/final does not match any allowed URL(s)`,
    )
    expect((await failure(locateModel(`${origin}/loop.mar`, at(store, { allowedUrls })))).code).toBe(
      'DOWNLOAD_FAILED',
    )
    expect(readdirSync(store)).toEqual(['good.mar'])
  })

  test('stops at the limit, announced or not', async () => {
    let closed: () => void = () => undefined
    const aborted = new Promise<void>((resolve) => (closed = resolve))
    const origin = await serve((_request, response) => {
      response.on('close', closed)
      const send = (): void => {
        while (response.write(Buffer.alloc(100_000)));
        response.once('drain', send)
      }
      send()
    })
    const store = tempFolder()
    const error = await failure(
      locateModel(
        `${origin}/x.mar`,
        at(store, { allowedUrls: ANY, download: { allowPrivate: true, maxBytes: 1_000_000 } }),
      ),
    )
    expect(error).toEqual({
      code: 'DOWNLOAD_FAILED',
      message: `Failed to download archive from: ${origin}/x.mar`,
    })
    await aborted
    expect(readdirSync(store)).toEqual([])
  })

  test.each([
    ['an error', (response) => response.writeHead(404).end('no')],
    [
      'half a body',
      (response) =>
        response.writeHead(200, { 'content-length': 100 }).write('half', () => response.destroy()),
    ],
    ['nothing', (response) => response.destroy()],
    ['a redirect to nowhere', (response) => response.writeHead(302).end()],
  ] as [string, (response: Parameters<RequestListener>[1]) => unknown][])(
    'fails at %s',
    async (_what, answer) => {
      const origin = await serve((_request, response) => void answer(response))
      const store = tempFolder()
      expect(await failure(locateModel(`${origin}/x.mar`, at(store, { allowedUrls: ANY })))).toEqual({
        code: 'DOWNLOAD_FAILED',
        message: `Failed to download archive from: ${origin}/x.mar`,
      })
      expect(readdirSync(store)).toEqual([])
    },
  )

  test.each(['/', '/.hidden', '/a%2Fb', '/a%5Cb', '/nul', '/%zz'])(
    'needs a file name, not %s',
    async (path) => {
      const origin = await serve((_request, response) => response.end('x'))
      const store = tempFolder()
      expect((await failure(locateModel(origin + path, at(store, { allowedUrls: ANY })))).code).toBe(
        'DOWNLOAD_FAILED',
      )
      expect(readdirSync(store)).toEqual([])
    },
  )

  test('is not even tried when it is not allowed', async () => {
    let asked = 0
    const origin = await serve((_request, response) => {
      asked += 1
      response.end()
    })
    const url = `${origin}/x.mar`
    expect(await failure(locateModel(url, at(tempFolder(), { allowedUrls: [/https:.*/] })))).toEqual({
      code: 'MODEL_NOT_FOUND',
      message: `Given URL ${url} does not match any allowed URL(s)`,
    })
    expect(asked).toBe(0)
  })

  test('of a large file is whole', async () => {
    const body = Buffer.alloc(5_000_000, 'abc')
    const origin = await serve((_request, response) => response.end(body))
    const { path } = await locateModel(`${origin}/x.mar`, at(tempFolder(), { allowedUrls: ANY }))
    expect(readFileSync(path).equals(body)).toBe(true)
  })
})

describe('all models of a store', () => {
  test('are its archives and the folders that hold a handler or a manifest', async () => {
    const store = tempFolder({
      'a.mar': '',
      'b.tgz': '',
      'c.tar.gz': '',
      'd.model': '',
      'e/handler.ts': '',
      'f/MAR-INF/MANIFEST.json': '',
      'g/inner/handler.py': '',
      'notes/readme.txt': '',
      'training/train.py': '',
      'readme.md': '',
      '.hidden.mar': '',
      '.hidden/handler.ts': '',
    })
    const { models, skipped } = await listStore(store)
    expect(models.map((model) => model.location)).toEqual([
      'a.mar',
      'b.tgz',
      'c.tar.gz',
      'd.model',
      'e',
      'f',
      'g',
    ])
    expect(models[0]).toEqual({ location: 'a.mar', path: join(store, 'a.mar') })
    expect(skipped.map(({ location }) => location)).toEqual(['notes', 'training'])
  })

  test('are never met twice: the archive stands for the folder it was made from', async () => {
    const store = tempFolder({
      'x/handler.ts': '',
      'x.tar.gz': '',
      'x.mar': '',
      'y/handler.ts': '',
      'y-2.mar': '',
    })
    const { models, skipped } = await listStore(store)
    expect(models.map((model) => model.location)).toEqual(['x.mar', 'y', 'y-2.mar'])
    expect(skipped).toEqual([
      { location: 'x.tar.gz', reason: 'x.tar.gz is skipped: x.mar contains the same model.' },
      { location: 'x', reason: 'x is skipped: x.mar contains the same model.' },
    ])
  })

  test('need a store that is a folder; one that is gone has none', async () => {
    expect((await failure(listStore(import.meta.filename))).code).toBe('CONFIG')
    expect((await listStore('/no/such/store')).models).toEqual([])
  })
})
