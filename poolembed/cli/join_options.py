"""Options for queries and documents that stand in files of their own."""

from poolembed.cli.option import option

JOIN_OPTIONS = (
    option("--queries", metavar="FILE", help="Join: rows with the id and the text of a query."),
    option("--documents", metavar="FILE", help="Join: rows with the id and the text of a document."),
    option("--candidates", metavar="FILE", help="Join: which documents may fit which query, by their ids."),
    option(
        "--query-id-field",
        metavar="NAME",
        help="Join: column with the id of a query; else a known name, see above.",
    ),
    option(
        "--document-id-field",
        metavar="NAME",
        help="Join: column with the id of a document, or a list of them; else a known name, see above.",
    ),
)
