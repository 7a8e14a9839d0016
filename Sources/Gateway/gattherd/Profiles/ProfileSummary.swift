import GattherdModel

/// A profile on the terminal.
struct ProfileSummary {
    let text: String

    init(_ profile: any Profile) {
        let facts = ProfileFacts(profile)
        var blocks = ["\(profile.name): \(profile.title), from \(profile.origin)\n\(facts.serving)"]
        for section in facts.sections {
            let lines = TextTable(section.header.map { $0.uppercased() }, section.rows).lines.map { "  \($0)" }
            blocks.append("\(section.title)\n" + lines.joined(separator: "\n"))
        }
        blocks.append("SQL\n" + facts.queries.map { "  \($0)" }.joined(separator: "\n"))
        text = blocks.joined(separator: "\n\n")
    }
}
