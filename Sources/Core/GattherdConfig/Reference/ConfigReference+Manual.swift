/// The manual page `gattherd.yaml(5)`, in the language of man(7).
extension ConfigReference {
    /// - Parameter version: The version of gattherd.
    /// - Returns: The page.
    package func manual(version: String) -> String {
        let head = """
            .TH GATTHERD.YAML 5 "" "gattherd \(version)" "File formats"
            .SH NAME
            gattherd.yaml \\- configuration of gattherd
            .SH SYNOPSIS
            .I /etc/gattherd/gattherd.yaml
            .br
            .I /etc/gattherd/gattherd.d/*.yaml
            .SH DESCRIPTION
            The main file is read first, then those of the folder in the order of their names. Lists of devices and rules are
            joined; any other key may be set in one file only.
            .B gattherd check
            reports mistakes with line and column.
            .PP
            Durations are written 500ms, 1.5s, 5m, 24h, 30d, 2w or 1y; sizes 500MB or 2GiB. ${NAME} and ${NAME:\\-default}
            insert environment variables; $${ gives a literal ${. Relative paths start at the folder of the main file. NAME
            stands for a name that you choose.
            .SH KEYS

            """
        let foot = """
            .SH SEE ALSO
            .BR gattherd (1),
            .BR systemd.time (7)

            """
        return head + all.map { Self.item($0) }.joined() + foot
    }

    private static func item(_ entry: Entry) -> String {
        var words = [entry.kinds.isEmpty ? "" : entry.kinds + ".", entry.description?.text ?? ""]
        if let other = entry.referred { words.append("Keys as in \(other).") }
        if let example = entry.description?.example { words.append("Example: \(entry.name): \(example).") }
        words.append(entry.key.isRequired ? "Required." : entry.defaultWords.map { "Default: \($0)." } ?? "")
        let text = words.filter { !$0.isEmpty }.joined(separator: " ")
        return ".TP\n.B \(escaped(entry.path))\n\(escaped(text))\n"
    }

    /// Returns a text without control lines and escapes of its own.
    private static func escaped(_ text: String) -> String {
        let plain = text.replacing("`", with: "").replacing("\\", with: "\\e").replacing("-", with: "\\-")
        return plain.first == "." || plain.first == "'" ? "\\&" + plain : plain
    }
}
