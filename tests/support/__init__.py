"""What many test files share: small networks, results made by hand, and slow literal references."""
