// Reads the memories under the mount: one file, all of them, and the links between them.
//
// Bound to /workspace/lib/corpus.mjs inside the sandbox; needs no package and runs under plain
// node 18 or newer as well. It reads well-formed records and is forgiving with others: it is no
// validator, and what it shows of a broken file is a best effort.

import fs from "node:fs"
import path from "node:path"

export const ROOT = "/mnt/memhtml"

/** Absolute paths of all `.html` files below a folder, without `index.html`, in path order. */
export function walk(dir = ROOT) {
  const found = []
  const todo = [path.resolve(dir)]
  while (todo.length > 0) {
    const folder = todo.pop()
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
      const full = path.join(folder, entry.name)
      if (entry.isDirectory()) todo.push(full)
      else if (entry.isFile() && entry.name.endsWith(".html") && entry.name !== "index.html") {
        found.push(full)
      }
    }
  }
  return found.sort(byText)
}

/** One memory: its head, its claim and facets, its links, and the file's text. */
export function memoryAt(file, root = ROOT) {
  const full = path.resolve(file)
  const html = fs.readFileSync(full, "utf8")
  const { head, document } = parse(html)
  const article = first(document, (node) => node.name === "article")
  const mark = article && first(article, (node) => node.name === "mark")
  const time = article && first(article, (node) => node.name === "time")
  const title = first(document, (node) => node.name === "title")
  const metas = head.filter((node) => node.name === "meta")
  const all = (name) => metas.filter((m) => m.attributes.get("name") === `memhtml-${name}`)
    .map((m) => m.attributes.get("content") ?? "")
  const one = (name) => all(name)[0] ?? ""
  return {
    path: "/" + path.relative(path.resolve(root), full).split(path.sep).join("/"),
    file: full,
    title: title ? tidy(textOf(title)) : "",
    memoryType: one("type"),
    status: one("status"),
    claim: mark ? tidy(textOf(mark, new Set(["pre", "code"]))) : "",
    tags: all("tag").filter((value) => value !== ""),
    entities: all("entity").filter((value) => value !== ""),
    links: linksOf(head),
    facets: article ? facetsOf(article) : {},
    citations: article ? citationsOf(article) : [],
    eventAt: time?.attributes.get("datetime") ?? null,
    html,
  }
}

/** Every memory below a root, by its root-absolute path. */
export function corpus(root = ROOT) {
  const map = new Map()
  for (const file of walk(root)) {
    const memory = memoryAt(file, root)
    map.set(memory.path, memory)
  }
  return map
}

/** Who links to a path: target path to `[{from, rel}]`. */
export function backlinks(map) {
  const found = new Map()
  for (const { from, rel, href } of links(map)) {
    const target = targetOf(href)
    if (!found.has(target)) found.set(target, [])
    found.get(target).push({ from, rel })
  }
  return found
}

/**
 * Paths from `start` along the first link of one rel, until there is none or a path repeats. A
 * target that is no memory is the last one. The rel may be written `memhtml-part-of` or `part_of`.
 */
export function chain(map, start, rel) {
  const wanted = token(rel)
  const paths = [start]
  const seen = new Set(paths)
  for (;;) {
    const memory = map.get(paths[paths.length - 1])
    const link = memory?.links.find((candidate) => token(candidate.rel) === wanted)
    const target = link && targetOf(link.href)
    if (target === undefined || seen.has(target)) return paths
    seen.add(target)
    paths.push(target)
  }
}

/** All links, split by whether their target is a memory of the map. */
export function edges(map) {
  const resolved = []
  const dangling = []
  for (const link of links(map)) (map.has(targetOf(link.href)) ? resolved : dangling).push(link)
  return { resolved, dangling }
}

function* links(map) {
  for (const [from, memory] of map) {
    for (const { rel, href } of memory.links) yield { from, rel, href }
  }
}

const targetOf = (href) => href.split(/[?#]/, 1)[0]
const token = (rel) => (rel.startsWith("memhtml-") ? rel : `memhtml-${rel}`).replaceAll("_", "-")
const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0)

// Only ASCII white space is collapsed: a no-break space is content.
const tidy = (text) => text.replace(/[ \t\n\f\r]+/g, " ").replace(/^ | $/g, "")

function linksOf(head) {
  return head
    .filter((node) => node.name === "link" && (node.attributes.get("rel") ?? "").startsWith("memhtml-"))
    .map((node) => ({ rel: node.attributes.get("rel"), href: node.attributes.get("href") ?? "" }))
}

function facetsOf(article) {
  const pairs = []
  for (const list of elements(article)) {
    if (list.name !== "dl") continue
    let term = null
    for (const child of list.children) {
      if (child.name === "dt") term = tidy(textOf(child))
      else if (child.name === "dd" && term !== null) pairs.push([term, tidy(textOf(child))])
    }
  }
  return Object.fromEntries(pairs)
}

function citationsOf(article) {
  const found = []
  for (const node of elements(article)) {
    const isQuote = node.name === "q" && node.attributes.has("cite")
    if (node.name !== "cite" && !isQuote) continue
    found.push({ text: tidy(textOf(node)), href: node.attributes.get("cite") ?? null })
  }
  return found
}

// Trees. A node is { name, attributes, children }, a text is { text }. No walk recurses: nesting
// in a file may be deeper than the stack.

function* elements(root) {
  const todo = [...root.children].reverse()
  while (todo.length > 0) {
    const node = todo.pop()
    if (node.text !== undefined) continue
    yield node
    for (let i = node.children.length - 1; i >= 0; i--) todo.push(node.children[i])
  }
}

function first(root, test) {
  for (const node of elements(root)) if (test(node)) return node
  return null
}

function textOf(root, without = new Set()) {
  const parts = []
  const todo = [...root.children].reverse()
  while (todo.length > 0) {
    const node = todo.pop()
    if (node.text !== undefined) parts.push(node.text)
    else if (!without.has(node.name)) {
      for (let i = node.children.length - 1; i >= 0; i--) todo.push(node.children[i])
    }
  }
  return parts.join("")
}

const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "))
const RAW = new Set("script style textarea title xmp iframe noembed noframes".split(" "))
const DECODED_RAW = new Set(["textarea", "title"])
const HEAD_TEXT = new Set("title style script noscript".split(" "))
const HEAD = new Set("html head meta link title base style script noscript template".split(" "))
// A start tag of the first ends an open element of the second kind.
const ENDS_P = new Set(("address article aside blockquote details div dl fieldset figcaption " +
  "figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul").split(" "))
const ENDS_SAME = { li: ["li"], dt: ["dt", "dd"], dd: ["dt", "dd"], tr: ["tr", "td", "th"],
  td: ["td", "th"], th: ["td", "th"], option: ["option"] }
const SCOPE = new Set("ul ol dl table figure article section aside details template body".split(" "))

function parse(html) {
  const document = { name: "", attributes: new Map(), children: [], hidden: false }
  const stack = [document]
  const head = []
  let inHead = true
  const top = () => stack[stack.length - 1]
  const closeOpen = (names) => {
    for (let i = stack.length - 1; i > 0; i--) {
      if (names.includes(stack[i].name)) { stack.length = i; return }
      if (SCOPE.has(stack[i].name)) return
    }
  }
  const start = (name, attributes) => {
    if (ENDS_P.has(name)) closeOpen(["p"])
    if (ENDS_SAME[name]) closeOpen(ENDS_SAME[name])
    const parent = top()
    // What a template holds is no part of the document.
    const node = { name, attributes, children: [], hidden: parent.hidden || name === "template" }
    if (!node.hidden) {
      if (!HEAD.has(name)) inHead = false
      if (inHead && (name === "meta" || name === "link")) head.push(node)
      parent.children.push(node)
    }
    if (!VOID.has(name)) stack.push(node)
  }
  const end = (name) => {
    for (let i = stack.length - 1; i > 0; i--) {
      if (stack[i].name === name) { stack.length = i; return }
    }
  }
  for (const item of tokens(html)) {
    if (item.kind === "start") start(item.name, item.attributes)
    else if (item.kind === "end") end(item.name)
    else {
      const parent = top()
      if (!parent.hidden && !HEAD_TEXT.has(parent.name) && /[^ \t\n\f\r]/.test(item.text)) {
        inHead = false
      }
      parent.children.push({ text: item.text })
    }
  }
  return { head, document }
}

function* tokens(html) {
  const source = html.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n")
  let at = 0
  let textFrom = 0
  while (at < source.length) {
    const open = source.indexOf("<", at)
    if (open < 0) break
    const markup = markupAt(source, open)
    if (markup === null) { at = open + 1; continue }
    if (open > textFrom) yield { kind: "text", text: decode(source.slice(textFrom, open)) }
    at = textFrom = markup.end
    if (markup.name === undefined) continue
    const { name, attributes } = markup
    if (markup.closing) { yield { kind: "end", name }; continue }
    yield { kind: "start", name, attributes }
    if (!RAW.has(name)) continue
    const close = endOfRaw(source, name, at)
    const raw = source.slice(at, close)
    if (raw) yield { kind: "text", text: DECODED_RAW.has(name) ? decode(raw) : raw }
    at = textFrom = close
  }
  if (textFrom < source.length) yield { kind: "text", text: decode(source.slice(textFrom)) }
}

/** What starts at a `<` and where it ends; null when the `<` is a plain character. */
function markupAt(source, open) {
  const until = (text, from) => {
    const found = source.indexOf(text, from)
    return { end: found < 0 ? source.length : found + text.length }
  }
  if (source.startsWith("<!-->", open)) return { end: open + 5 }
  if (source.startsWith("<!--", open)) return until("-->", open + 4)
  const next = source[open + 1] ?? ""
  if (next === "!" || next === "?") return until(">", open + 2)
  const closing = next === "/"
  const from = closing ? open + 2 : open + 1
  if (/[a-zA-Z]/.test(source[from] ?? "")) return tagAt(source, from, closing)
  return closing ? until(">", from) : null
}

/** A tag from its name on; one that the file's end cuts off counts for nothing. */
function tagAt(source, from, closing) {
  const attributes = new Map()
  let at = from
  const take = (pattern) => {
    pattern.lastIndex = at
    const found = pattern.exec(source)[0]
    at += found.length
    return found
  }
  const name = take(/[^\s/>]*/y).toLowerCase()
  for (;;) {
    take(/[\s/]*/y)
    if (at >= source.length) return { end: at }
    if (source[at] === ">") return { end: at + 1, name, attributes, closing }
    const key = take(/=?[^\s/>=]*/y).toLowerCase()
    let value = ""
    const afterName = at
    take(/\s*/y)
    if (source[at] === "=") {
      at += 1
      take(/\s*/y)
      const quote = source[at]
      if (quote === '"' || quote === "'") {
        const close = source.indexOf(quote, at + 1)
        if (close < 0) return { end: source.length }
        value = source.slice(at + 1, close)
        at = close + 1
      } else value = take(/[^\s>]*/y)
    } else at = afterName
    // Of two attributes with one name the first counts.
    if (!attributes.has(key)) attributes.set(key, decode(value))
  }
}

function endOfRaw(source, name, from) {
  const closing = new RegExp(`</${name}(?=[\\s/>])`, "gi")
  closing.lastIndex = from
  const found = closing.exec(source)
  return found === null ? source.length : found.index
}

const NAMED = new Map(Object.entries({
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", hellip: "…", ndash: "–", mdash: "—",
  lsquo: "‘", rsquo: "’", sbquo: "‚", ldquo: "“", rdquo: "”", bdquo: "„", lsaquo: "‹",
  rsaquo: "›", bull: "•", prime: "′", Prime: "″", trade: "™", euro: "€", larr: "←", uarr: "↑",
  rarr: "→", darr: "↓", harr: "↔", rArr: "⇒", hArr: "⇔", minus: "−", ne: "≠", le: "≤", ge: "≥",
  asymp: "≈", infin: "∞", sum: "∑", radic: "√", ensp: "\u2002", emsp: "\u2003", thinsp: "\u2009",
  zwnj: "\u200c", zwj: "\u200d", alpha: "α", beta: "β", gamma: "γ", delta: "δ", lambda: "λ",
  mu: "μ", pi: "π", sigma: "σ", Omega: "Ω", Delta: "Δ", Sigma: "Σ", check: "✓",
}))
const LATIN = ("nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr " +
  "deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest " +
  "Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc " +
  "Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute " +
  "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave " +
  "iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc " +
  "uuml yacute thorn yuml").split(" ")
LATIN.forEach((name, index) => NAMED.set(name, String.fromCharCode(160 + index)))

/** Character references: every number, and the names a record is likely to hold. */
function decode(text) {
  return text.replace(/&(?:#[xX]([0-9a-fA-F]+)|#([0-9]+)|([a-zA-Z][a-zA-Z0-9]*));?/g,
    (whole, hex, decimal, name) => {
      if (name !== undefined) return whole.endsWith(";") ? NAMED.get(name) ?? whole : whole
      const code = hex !== undefined ? parseInt(hex, 16) : parseInt(decimal, 10)
      const bad = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
      return bad ? "\ufffd" : String.fromCodePoint(code)
    })
}
