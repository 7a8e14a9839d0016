import FoundationEssentials
import TestKit

/// A Markdown page, taken apart for its tests.
struct DocumentationPage: CustomStringConvertible, Sendable {
    struct Link {
        let path: String
        let anchor: String?
    }

    let url: URL
    /// The lines outside of code blocks.
    private let prose: [Substring]
    /// The lines of fenced and indented code blocks, with the language of the fence.
    private let code: [(language: String, lines: [Substring])]

    static func all() throws -> [DocumentationPage] {
        let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map { Checkout.root.appending(path: $0) }
        let below = try ["docs", "docs/decisions", "Plugins/Standard", "Plugins/HeartRate", "Plugins/NumberService"]
            .flatMap { folder in
                let place = Checkout.root.appending(path: folder)
                return try FileManager.default.contentsOfDirectory(atPath: place.path)
                    .filter { $0.hasSuffix(".md") }.sorted().map { place.appending(path: $0) }
            }
        return try (top + below).map { try DocumentationPage($0) }
    }

    init(_ url: URL) throws {
        self.url = url
        var (prose, code): ([Substring], [(language: String, lines: [Substring])]) = ([], [])
        var fence: String?
        let text = url.pathExtension == "md" ? try String(contentsOf: url, encoding: .utf8) : ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                fence = fence == nil ? String(line.dropFirst(3)) : nil
                if let fence { code.append((fence, [])) }
            } else if fence != nil {
                code[code.count - 1].lines.append(line)
            } else if line.hasPrefix("    ") {
                code.append(("", [line.dropFirst(4)]))
            } else {
                prose.append(line)
            }
        }
        (self.prose, self.code) = (prose, code)
    }

    var description: String { url.path.replacing(Checkout.root.path + "/", with: "") }

    /// Links to files of this package and to headings; others are left out.
    var relativeLinks: [Link] {
        prose.joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/).compactMap { match in
            let target = match.1
            guard !target.contains(":") else { return nil }
            let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            return Link(path: String(parts.first ?? ""), anchor: parts.count == 2 ? String(parts[1]) : nil)
        }
    }

    /// The anchors of the headings, as GitHub makes them.
    var headings: Set<String> {
        Set(
            prose.filter { $0.hasPrefix("#") }.map { line in
                line.drop { $0 == "#" || $0 == " " }.lowercased()
                    .filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_" }
                    .replacing(" ", with: "-")
            }
        )
    }

    /// The number of cells in each row of each table.
    var tables: [[Int]] {
        prose.split { !$0.hasPrefix("|") }.map { rows in
            rows.map { row in row.replacing("\\|", with: "").count { $0 == "|" } - 1 }
        }
    }

    func blocks(of language: String) -> [String] {
        code.filter { $0.language == language }.map { $0.lines.joined(separator: "\n") + "\n" }
    }

    /// The words after `gattherd` of each command line, in code blocks and in `code` of sentences and tables.
    var commandLines: [[String]] {
        let lines = code.filter { ["", "console"].contains($0.language) }.flatMap(\.lines).map { String($0) }
        let spans = prose.joined(separator: " ").matches(of: /`(gattherd [^`]+)`/).map { String($0.1) }
        return (lines + spans).compactMap { Self.command($0) }
    }

    /// The names of Swift files in `code` of sentences and tables, without their folders.
    var namedSourceFiles: [String] {
        prose.joined(separator: " ").matches(of: /`([A-Za-z0-9+\/]+\.swift)`/)
            .map { $0.1.split(separator: "/").last.map(String.init) ?? "" }
    }

    /// The names of all Swift files of the package.
    static func sourceFileNames() throws -> Set<String> {
        let folders = ["Sources", "Tests", "Plugins"].map { Checkout.root.appending(path: $0).path }
        let paths = try folders.flatMap { try FileManager.default.subpathsOfDirectory(atPath: $0) }
        let names = paths.filter { $0.hasSuffix(".swift") }.compactMap {
            $0.split(separator: "/").last.map(String.init)
        }
        return Set(names + ["Package.swift"])
    }

    /// The queries of `sqlite3 FILE "…"` lines and of SQL blocks.
    var queries: [String] {
        let lines = code.flatMap(\.lines)
        let shell = lines.compactMap { $0.firstMatch(of: /sqlite3 \S+ "(SELECT [^"]+)"/).map { String($0.1) } }
        return shell + blocks(of: "sql")
    }

    /// The arguments of a line that runs gattherd; `nil` for other lines, output, and lines with an ellipsis.
    static func command(_ line: String) -> [String]? {
        guard let match = line.firstMatch(of: /^(\$ )?(sudo (-u gattherd )?)?gattherd ([a-z].*)$/) else { return nil }
        var words = shellWords(String(match.4))
        if let end = words.firstIndex(where: { ["#", "|", ">", "&&"].contains($0) }) { words.removeSubrange(end...) }
        guard !words.contains(where: { $0.contains("…") }), words.first != "help" else { return nil }
        return words
    }

    private static func shellWords(_ text: String) -> [String] {
        text.matches(of: /"([^"]*)"|'([^']*)'|(\S+)/).map { match in
            String(match.1 ?? match.2 ?? match.3 ?? "")
        }
    }
}
