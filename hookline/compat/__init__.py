"""Code written for other frameworks, running unchanged. It sits on top of everything; nothing else imports it."""
