public import FoundationEssentials

/// The package's own files.
public enum Checkout {
    /// The package's root folder.
    public static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}
