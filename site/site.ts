/** The documentation as a site: `npm run docs:build`, and `npm run docs:dev` to look at it while writing. */
import { watch } from 'node:fs'
import { join } from 'node:path'
import { build, createServer } from 'vitepress'
import { problemsOf } from './check.ts'
import { SITE, stage } from './stage.ts'

await stage()
if (process.argv[2] === 'dev') {
  const server = await createServer(import.meta.dirname, {})
  await server.listen()
  server.printUrls()
  const docs = join(import.meta.dirname, '..', 'docs')
  let staging = Promise.resolve()
  watch(docs, { recursive: true }, () => {
    staging = staging.then(stage).catch(console.error)
  })
} else {
  await build(import.meta.dirname)
  const problems = problemsOf(SITE)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  console.log(`Wrote ${SITE}`)
}
