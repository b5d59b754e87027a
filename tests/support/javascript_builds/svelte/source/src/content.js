// The content of a page comes as JSON: its title, its paragraphs, its links.
export function apiUrl(path) {
  return path === '/' ? '/api/index.json' : `/api${path}.json`
}

export async function load(path) {
  const response = await fetch(apiUrl(path))
  if (!response.ok) throw new Error(`status ${response.status}`)
  return response.json()
}
