/// Puts environment variables into a value: `${NAME}`, `${NAME:-default}`; `$${` stands for `${`.
struct Substitution {
    /// An error and its place in the value, in characters from the start.
    struct Failure: Error {
        let problem: ConfigProblem
        let offset: Int
        let width: Int
    }

    let variables: [String: String]

    /// Returns `text` with its variables replaced once.
    func apply(to text: String) throws(Failure) -> String {
        guard text.unicodeScalars.contains("$") else { return text }
        let characters = Array(text.unicodeScalars)
        var result = String.UnicodeScalarView()
        var index = 0
        while index < characters.count {
            if characters[index...].starts(with: "$${".unicodeScalars) {
                result.append(contentsOf: "${".unicodeScalars)
                index += 3
            } else if characters[index...].starts(with: "${".unicodeScalars) {
                index = try replace(at: index, in: characters, &result)
            } else {
                result.append(characters[index])
                index += 1
            }
        }
        return String(result)
    }

    /// Appends the value of the variable whose `${` is at `start`; returns the index after its `}`.
    private func replace(
        at start: Int,
        in characters: [Unicode.Scalar],
        _ result: inout String.UnicodeScalarView
    ) throws(Failure) -> Int {
        guard let end = characters[start...].firstIndex(of: "}") else {
            throw Failure(problem: .badSubstitution, offset: start, width: characters.count - start)
        }
        var inside = String.UnicodeScalarView()
        inside.append(contentsOf: characters[(start + 2)..<end])
        let width = end + 1 - start
        let (name, fallback) = Self.parts(String(inside))
        guard Self.isName(name) else { throw Failure(problem: .badSubstitution, offset: start, width: width) }
        guard let value = value(of: name, or: fallback) else {
            throw Failure(problem: .undefinedVariable(name), offset: start, width: width)
        }
        result.append(contentsOf: value.unicodeScalars)
        return end + 1
    }

    /// Returns the value or, as in a shell, the default if the variable is empty.
    private func value(of name: String, or fallback: String?) -> String? {
        guard let fallback else { return variables[name] }
        guard let value = variables[name], !value.isEmpty else { return fallback }
        return value
    }

    private static func parts(_ inside: String) -> (name: String, fallback: String?) {
        let name = inside.prefix { $0 != ":" }
        let rest = inside[name.endIndex...]
        guard rest.hasPrefix(":-") else { return (inside, nil) }
        return (String(name), String(rest.dropFirst(2)))
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
            return false
        }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
