extension String {
    /// The folder of a path: `/` for a name in the root, `.` for a bare name.
    package var parentFolder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
