// Written by `blackboard setup`, which replaces and removes this file: changes here are lost.
//
// Passes what happens in OpenCode to `blackboard hook opencode` as one JSON object on its standard input:
// { event, session_id, parent_id?, task?, cwd, tool_name?, tool_input?: { files, patch? }, usage?: [{ id, model, at, tokens }] }.
// Usage has the numbers of tokens of completed messages, and no text. Its answer, if any, is one JSON object:
// { context?, env?, deny? }. Whatever goes wrong on the way is silence.

import { randomUUID } from "node:crypto"

const LIMIT_MS = 2000
const SERVER = "blackboard_"
// How many messages one call passes on, and how many earlier ones are read of a session that goes on.
const MESSAGES = 1000

const call = async (input) => {
  try {
    // The input is there before the child is. A pipe would be written when this process finds the time, and at the start of
    // a session that is later than a hook waits.
    const child = Bun.spawn(["blackboard", "hook", "opencode"], {
      cwd: input.cwd,
      stdin: new TextEncoder().encode(JSON.stringify(input)),
      stdout: "pipe",
      stderr: "ignore",
      timeout: LIMIT_MS,
    })
    return JSON.parse(await new Response(child.stdout).text()) ?? {}
  } catch {
    return {}
  }
}

// OpenCode gives a subagent's session the description of its task as a title.
const about_parent = (info) => ({ parent_id: info?.parentID, task: info?.parentID ? info.title : undefined })

// The numbers of a message, once it is complete.
const usage_of = (info) => {
  const { input, output, reasoning, cache } = info?.tokens ?? {}
  if (info?.role !== "assistant" || !info.time?.completed || input === undefined) return []
  const tokens = { input, output, reasoning, cache: { read: cache?.read, write: cache?.write } }
  return [{ id: info.id, model: info.modelID, at: info.time.completed, tokens }]
}

export const Blackboard = async ({ client, directory }) => {
  // One process hosts many sessions: what waits to be told to each, what its shells are to know, and the last call for it.
  const sessions = new Map()

  const pass = (session_id, session, event, more) => {
    const passed = session.last.then(async () => {
      const said = await more
      session.parent ??= said?.parent_id
      // A hook that runs out of time has read nothing. So each message is passed on twice; it is counted once.
      const fresh = session.usage.splice(0, MESSAGES)
      const usage = [...session.passed, ...fresh]
      session.passed = fresh
      const answer = await call({ event, session_id, cwd: directory, ...said, ...(usage.length && { usage }) })
      if (answer.context) session.context.push(answer.context)
      Object.assign(session.env, answer.env)
      return answer
    })
    session.last = passed.catch(() => {})
    return passed
  }

  // Events come when they like, and a session that goes on after a pause has none: it starts when it is heard of first.
  const heard = (session_id, parent = parentOf) => {
    if (sessions.has(session_id)) return sessions.get(session_id)
    const session = { context: [], env: {}, last: Promise.resolve(), usage: [], passed: [] }
    sessions.set(session_id, session)
    pass(session_id, session, "session.created", parent(session_id))
    if (parent === parentOf) earlier(session_id, session)
    return session
  }

  // A process that was killed may not have passed on what its last messages used.
  const earlier = async (id, session) => {
    try {
      const { data } = await client.session.messages({ path: { id }, query: { limit: MESSAGES } })
      session.usage.push(...data.slice(-MESSAGES).flatMap(({ info }) => usage_of(info)))
    } catch {}
  }

  const parentOf = async (id) => {
    try {
      return about_parent((await client.session.get({ path: { id } })).data)
    } catch {
      return {}
    }
  }

  // Calls for one session are made one after another: none comes before the session is registered.
  const tell = async (event, session_id, more = {}) =>
    session_id ? pass(session_id, heard(session_id), event, more) : {}

  const end = async (session_id) => {
    const session = sessions.get(session_id)
    if (!session) return
    sessions.delete(session_id)
    await pass(session_id, session, "session.deleted")
  }

  // A subagent that has nothing to do has done what it was started for. If it is asked again, it starts again.
  const rest = async (session_id) => {
    const session = sessions.get(session_id)
    await session?.last
    await (session?.parent ? end(session_id) : session && pass(session_id, session, "session.idle"))
  }

  // What a session has not been told yet.
  const news = (session_id) => sessions.get(session_id)?.context.splice(0).join("\n\n") ?? ""

  // Of what a tool is given, only the file or the patch leaves this process. The hook reads which files a patch names, as it does
  // for other platforms.
  const about = ({ tool }, args) => {
    const files = args?.filePath ? [args.filePath] : []
    return { tool_name: tool, tool_input: { files, patch: args?.patchText } }
  }

  return {
    event: async ({ event }) => {
      const { info, sessionID } = event.properties ?? {}
      if (event.type === "session.created" && info?.id) await heard(info.id, () => about_parent(info)).last
      // It comes several times for a message. The next call passes it on.
      if (event.type === "message.updated") sessions.get(info?.sessionID)?.usage.push(...usage_of(info))
      if (event.type === "session.idle") await rest(sessionID)
      if (event.type === "session.deleted") await end(info?.id)
    },
    // What is said here and in the results of tools stays in the conversation.
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const session = heard(sessionID)
      await session.last
      // A hook that comes to no end in time says nothing, and there is another chance.
      if (!session.env.BLACKBOARD_SESSION_ID) {
        await pass(sessionID, session, "session.created", { parent_id: session.parent })
      }
      await tell("chat.message", sessionID)
      const text = news(sessionID)
      // Parts are sorted by their ids: what others do comes before what the user says.
      const id = `prt_00${randomUUID().replaceAll("-", "")}`
      if (text) parts.unshift({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
    },
    "tool.execute.before": async (input, output) => {
      const { deny } = await tell("tool.execute.before", input.sessionID, about(input, output.args))
      if (deny) throw new Error(deny)
      // One MCP server serves all sessions of this process.
      const session = sessions.get(input.sessionID)?.env.BLACKBOARD_SESSION_ID
      if (input.tool.startsWith(SERVER) && session) output.args.blackboard_session = session
    },
    "tool.execute.after": async (input, output) => {
      await tell("tool.execute.after", input.sessionID, about(input, input.args))
      const text = news(input.sessionID)
      if (!text || !output) return
      if (typeof output.output === "string") output.output += `\n\n${text}`
      else if (Array.isArray(output.content)) output.content.push({ type: "text", text })
    },
    "shell.env": async (input, output) => {
      Object.assign(output.env, sessions.get(input.sessionID)?.env)
    },
    dispose: async () => {
      await Promise.all([...sessions.keys()].map(end))
    },
  }
}
