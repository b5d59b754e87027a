import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { load } from './content.js'

function Page() {
  const [path, setPath] = useState(location.pathname)
  const [page, setPage] = useState(null)
  const [error, setError] = useState('')
  useEffect(() => {
    const moved = () => setPath(location.pathname)
    addEventListener('popstate', moved)
    return () => removeEventListener('popstate', moved)
  }, [])
  useEffect(() => {
    load(path).then(setPage, (failed) => setError(failed.message))
  }, [path])
  useEffect(() => {
    if (page) document.title = page.title
  }, [page])
  const go = (event) => {
    event.preventDefault()
    history.pushState(null, '', event.currentTarget.href)
    setPath(location.pathname)
  }
  if (error) return <p>Not found: {error}</p>
  if (!page) return <p>Loading</p>
  return (
    <main>
      <h1>{page.title}</h1>
      {page.paragraphs.map((text, n) => <p key={n}>{text}</p>)}
      <ul>
        {page.links.map((link) => (
          <li key={link.href}><a href={link.href} onClick={go}>{link.text}</a></li>
        ))}
      </ul>
    </main>
  )
}

createRoot(document.getElementById('root')).render(<Page />)
