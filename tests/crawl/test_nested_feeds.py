"""Nested sitemaps are parsed as seeds, to a limit."""

from tests.support.simulated import page, raw, site, topic

A = "http://a.test/"


def sitemap(number: int, *more: str):
    locations = "".join(f"<url><loc>{url}</loc></url>" for url in more)
    return raw(f"{A}map-{number}.xml", f"<urlset>{locations}</urlset>", "application/xml")


def test_an_indexs_sitemaps_are_read_and_their_pages_stand_where_the_crawl_starts(
    simulate, tmp_path
):
    web = site(sitemap(0, f"{A}map-1.xml"), sitemap(1, f"{A}page"), page(f"{A}page", text="whale"))
    rows = simulate(topic(tmp_path, f"{A}map-0.xml"), web).run().rows
    assert (rows[f"{A}page"]["outcome"], rows[f"{A}page"]["depth"]) == ("fetched", 0)


def test_the_sixth_sitemap_in_a_row_leads_nowhere(simulate, tmp_path):
    chain = [sitemap(n, f"{A}map-{n + 1}.xml", f"{A}page-{n}") for n in range(30)]
    pages = [page(f"{A}page-{n}") for n in range(30)]
    rows = simulate(topic(tmp_path, f"{A}map-0.xml"), site(*chain, *pages)).run().rows
    assert [url for url, row in rows.items() if row["outcome"] == "feed"] == [
        f"{A}map-{n}.xml" for n in range(5)
    ]
    assert rows[f"{A}map-5.xml"]["failure"] == "wrong-type"
    assert f"{A}map-6.xml" not in rows
